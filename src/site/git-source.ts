import { posix } from 'node:path'
import { type Repository, git } from './git.ts'
import {
  type SiteSource,
  type SourceFile,
  LEADS_NOWHERE,
  LEADS_OUT,
  LEADS_TO_DIRECTORY,
  MAX_YAML_BYTES,
  belongsToSite,
} from './source.ts'

/** The site as it is in a tree or commit: what is read cannot change meanwhile. */
export function gitSource(repo: Repository, treeish: string): SiteSource {
  const contents = new Map<string, Buffer>()
  return {
    async files() {
      const listing = await git(repo.dir, ['ls-tree', '-r', '-l', '-z', '--full-tree', `${treeish}:${repo.prefix}`])
      const lines = listing.toString('utf8').split('\0')
      const entries = lines.filter(entry => entry !== '').map(parseTreeLine)
      const files = await resolveLinks(repo, entries)
      await prefetch(repo, files, contents)
      return files
    },
    async read(file) {
      const blob = file.blob ?? ''
      return contents.get(blob) ?? git(repo.dir, ['cat-file', 'blob', blob])
    },
    blob: file => Promise.resolve(file.blob ?? ''),
  }
}

interface TreeLine extends SourceFile {
  readonly mode: string
  readonly blob: string
}

const LINK = '120000'

function parseTreeLine(entry: string): TreeLine {
  const [, mode = '', blob = '', size = '', path = ''] = /^(\d+) \w+ ([0-9a-f]+) +(\S+)\t(.*)$/s.exec(entry) ?? []
  return { path, mode, blob, size: Number(size) || 0, ...(mode === '160000' && { refused: 'is a git submodule' }) }
}

/** A link may lead through others, as in a directory, but neither out nor in circles. */
async function resolveLinks(repo: Repository, entries: readonly TreeLine[]): Promise<SourceFile[]> {
  const byPath = new Map(entries.map(entry => [entry.path, entry]))
  const folders = new Set(entries.flatMap(({ path }) => ancestorsOf(path)))
  const follow = async (entry: TreeLine, hops: number): Promise<{ found: TreeLine } | { refused: string }> => {
    if (entry.mode !== LINK) return { found: entry }
    const target = (await git(repo.dir, ['cat-file', 'blob', entry.blob])).toString('utf8')
    const path = posix.normalize(posix.join(posix.dirname(entry.path), target))
    if (target.startsWith('/') || path.startsWith('..')) return { refused: LEADS_OUT }
    if (folders.has(path)) return { refused: LEADS_TO_DIRECTORY }
    const next = byPath.get(path)
    return next === undefined || hops === 0 ? { refused: LEADS_NOWHERE } : follow(next, hops - 1)
  }
  const wanted = entries.filter(entry => belongsToSite(entry.path))
  return Promise.all(
    wanted.map(async (entry): Promise<SourceFile> => {
      const end = await follow(entry, MAX_LINKS)
      if ('refused' in end) return { path: entry.path, size: 0, refused: end.refused }
      return end.found === entry ? entry : { path: entry.path, size: end.found.size, blob: end.found.blob }
    }),
  )
}

const MAX_LINKS = 40

const ancestorsOf = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, depth, folders) => folders.slice(0, depth + 1).join('/'))

/** The YAML files, all in one go: a process per file would cost more than the whole rest. */
async function prefetch(repo: Repository, files: readonly SourceFile[], into: Map<string, Buffer>): Promise<void> {
  const readable = files.filter(
    file => file.path.endsWith('.yaml') && file.size <= MAX_YAML_BYTES && file.blob !== undefined,
  )
  const wanted = [...new Set(readable.map(file => file.blob ?? ''))]
  if (wanted.length === 0) return
  const output = await git(repo.dir, ['cat-file', '--batch'], { input: `${wanted.join('\n')}\n` })
  let at = 0
  for (const blob of wanted) {
    const headerEnd = output.indexOf('\n', at)
    const size = Number(output.toString('latin1', at, headerEnd).split(' ')[2])
    into.set(blob, output.subarray(headerEnd + 1, headerEnd + 1 + size))
    at = headerEnd + 1 + size + 1
  }
}
