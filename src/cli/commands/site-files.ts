import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { parseKeyFile } from '../../lib/age.ts'
import { quoteCommand } from '../../lib/exec.ts'
import { checkTestFolders } from '../../images/tests/check-folders.ts'
import { checkSite } from '../../site/check.ts'
import { initSite } from '../../site/init.ts'
import { jsonSchemas } from '../../site/json-schema.ts'
import { hideSecrets } from '../../site/paths.ts'
import { formatProblem, siteInvalid } from '../../site/problems.ts'
import type { FileKind } from '../../site/schema.ts'
import { checkSecrets } from '../../site/secrets.ts'
import { nodeNamed, openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { plural } from '../output.ts'
import { readKeys } from '../keys.ts'

export async function init({ io, out, args: [dir = '.'], options }: Call<{ name?: string }>): Promise<void> {
  const target = resolve(io.cwd, dir)
  const files = await initSite(target, options.name ?? basename(target))
  await out.result({ dir: target, files }, () => [
    ...files.map(file => `  ${file}`),
    `site ${options.name ?? basename(target)} made in ${dir}: ${plural(files.length, 'file')}, committed`,
    `next: cd ${quoteCommand(dir, [])} && muster site check`,
  ])
}

/** So many that it takes a while. */
const MANY = 20_000

export async function check({ io, out, args: [dir], options }: Call<{ key?: string }>): Promise<number> {
  const root = await siteDir(io, options, dir)
  const site = await openSite(await directorySource(root))
  const keys = await readKeys(io, options.key)
  if (site.nodes.size > MANY && io.stderr.isTTY === true) out.note(`checking ${plural(site.nodes.size, 'node')} …`)
  const tests = await checkTestFolders(root, site.files.images)
  const secrets = await checkSecrets(site, keys === undefined ? [] : parseKeyFile(keys))
  const problems = [...checkSite(site), ...tests.problems, ...secrets]
  const { warnings } = tests
  await out.result({ nodes: site.nodes.size, problems, warnings }, () => problems.map(formatProblem))
  if (out.isForPeople) for (const warning of warnings) out.note(`warning: ${formatProblem(warning)}`)
  if (problems.length === 0) return 0
  if (out.isForPeople) out.note(plural(problems.length, 'error'))
  return 1
}

export async function show({ io, out, args: [name = ''], options }: Call): Promise<void> {
  const site = await openSite(await directorySource(await siteDir(io, options)))
  const { value, problems } = site.resolve(nodeNamed(site, name))
  if (problems.length > 0) throw siteInvalid(problems)
  const shown = hideSecrets(value)
  const { stringify } = await import('yaml')
  await out.result(shown, () => [stringify(shown, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd()])
}

export async function schema({ io, out, args: [kind], options }: Call<{ write?: string }>): Promise<void> {
  const schemas = jsonSchemas()
  if (options.write === undefined) {
    out.line(JSON.stringify(schemas[(kind ?? 'nodes') as FileKind], null, 2))
    return
  }
  const dir = resolve(io.cwd, options.write)
  await mkdir(dir, { recursive: true })
  for (const [name, content] of Object.entries(schemas))
    await writeFile(join(dir, `${name}.json`), `${JSON.stringify(content, null, 2)}\n`)
  out.note(`${plural(Object.keys(schemas).length, 'schema')} written to ${options.write}`)
}
