/** Which folder of src/ may import which: the table of docs/architecture.md, enforced. Also: no import cycles. */
import { readFileSync, globSync } from 'node:fs'
import { dirname, normalize } from 'node:path'

const mayImport: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  ca: ['lib'],
  site: ['lib'],
  state: ['lib'],
  // What an image boots with is part of it.
  images: ['lib', 'site', 'state', 'boot/initramfs'],
  control: ['lib', 'site', 'state'],
  files: ['lib', 'site', 'state', 'boot/node-files'],
  nodes: ['lib', 'site', 'state'],
  boot: ['lib', 'site', 'state', 'images', 'nodes', 'ca'],
  lab: ['lib', 'site', 'state', 'images', 'nodes', 'boot', 'api/client', 'api/schemas', 'version'],
  api: ['lib', 'site', 'state', 'images', 'control', 'nodes', 'boot', 'files', 'ca'],
  cli: [
    'lib',
    'site',
    'images',
    'lab',
    'state/peek',
    'nodes/phases',
    'api/client',
    'api/client-images',
    'api/schemas',
    'control/generations',
    'serve',
    'restore',
    'version',
  ],
}

const files = globSync('src/**/*.ts').map(normalize).sort()
const problems = [...files.flatMap(crossings), ...cycles()]
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length > 0 ? 1 : 0

function importsOf(file: string, pattern: RegExp): string[] {
  const source = readFileSync(file, 'utf8')
  return [...source.matchAll(pattern)].map(match => normalize(`${dirname(file)}/${match[1]}`))
}

/** The files of src/ itself wire the parts together and may import anything. */
function crossings(file: string): string[] {
  const [, folder = '', ...below] = file.split('/')
  if (below.length === 0) return []
  const allowed = mayImport[folder]
  if (allowed === undefined) return [`${file}: folder ${folder} is not in the table`]
  return (
    importsOf(file, /(?:from|import\()\s*'(\.[^']+)'/g)
      // A test may borrow the world that another folder's tests live in.
      .filter(target => !(file.endsWith('.test.ts') && target.endsWith('/testing.ts')))
      .filter(target => ![folder, ...allowed].some(prefix => target.startsWith(`src/${prefix}`)))
      .map(target => `${file}: may not import ${target}`)
  )
}

/** What is only loaded when it is needed (`await import`) closes no circle. */
function cycles(): string[] {
  const imports = new Map(files.map(file => [file, importsOf(file, /from\s*'(\.[^']+)'/g)]))
  const found: string[] = []
  const done = new Set<string>()
  const visit = (file: string, path: string[]): void => {
    if (path.includes(file)) found.push(`import cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
    if (done.has(file) || path.includes(file)) return
    for (const target of imports.get(file) ?? []) visit(target, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  return found
}
