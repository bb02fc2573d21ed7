import { readFile, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { commitPaths, initRepository, openRepository } from './git.ts'
import { jsonSchemas } from './json-schema.ts'

const STARTER = fileURLToPath(new URL('starter', import.meta.url))

/** A small site to start from, in a new git repository or in a folder of an existing one; the files it made. */
export async function initSite(dir: string, name: string): Promise<string[]> {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name))
    throw new MusterError('USAGE', `${name} is not a site name (lower-case letters, digits and -)`, {
      hint: 'give one with --name',
    })
  await makeDirectory(dir)
  if ((await readdir(dir)).some(entry => entry !== '.git')) throw new MusterError('SITE_EXISTS', `${dir} is not empty`)
  const contents = new Map<string, string>()
  for (const path of (await readdir(STARTER, { recursive: true, withFileTypes: true })).filter(entry =>
    entry.isFile(),
  )) {
    const full = join(path.parentPath, path.name)
    contents.set(full.slice(STARTER.length + 1), (await readFile(full, 'utf8')).replaceAll('SITE_NAME', name))
  }
  for (const [kind, schema] of Object.entries(jsonSchemas()))
    contents.set(`.schema/${kind}.json`, `${JSON.stringify(schema, null, 2)}\n`)
  for (const [path, content] of contents) {
    await makeDirectory(dirname(join(dir, path)))
    await writeFile(join(dir, path), content)
  }
  const repo = await openRepository(dir).catch(async () => {
    await initRepository(dir)
    return openRepository(dir)
  })
  const files = [...contents.keys()].sort()
  await commitPaths(repo, files, `Begin site ${name}`)
  return files
}
