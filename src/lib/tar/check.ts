import { invalidArchive, quoteName, type TarMember } from './member.ts'

export interface ArchiveSummary {
  readonly members: number
  /** Of all files. */
  readonly bytes: number
  readonly devices: number
}

/** How much the names may take: millions of them. A few bytes, well compressed, could otherwise fill the memory. */
const MAX_NAMES = 512 * 1024 * 1024
/** What keeping a name costs beside the name. */
const NAME_COST = 64

/**
 * Refuses every archive that could touch anything outside the directory it is extracted in, whatever extracts it and
 * however carelessly. Symbolic links may point anywhere, for then nothing is ever written through one.
 */
export async function checkArchive(members: AsyncIterable<TarMember>): Promise<ArchiveSummary> {
  const files = new Set<string>()
  // Once a link, always a link: not every tool removes it when something else comes to stand in its place.
  const links = new Set<string>()
  const summary = { members: 0, bytes: 0, devices: 0 }
  let cost = 0
  for await (const member of members) {
    const path = pathOf(member)
    cost += path.length + NAME_COST
    if (cost > MAX_NAMES) throw invalidArchive('the archive has too many members')
    const why = dangerOf(member, path, files, links)
    if (why !== undefined) throw invalidArchive(`${quoteName(member.name)}: ${why}`)
    if (member.type === 'symlink') links.add(path)
    if (member.type === 'file' || member.type === 'hardlink') files.add(path)
    else files.delete(path)
    summary.members += 1
    summary.bytes += member.size
    if (isDevice(member)) summary.devices += 1
  }
  return summary
}

function pathOf({ name }: TarMember): string {
  const path = normalise(name)
  if (typeof path !== 'string') throw invalidArchive(`${quoteName(name)}: it ${path.why}`)
  return path
}

/** A relative path without '.' and empty components, '' for the root itself; or why there is none. */
function normalise(name: string): string | { readonly why: string } {
  if (name.includes('\0')) return { why: 'has a NUL in its name' }
  if (!name.isWellFormed()) return { why: 'has a name that is not Unicode' }
  const parts = name.split('/').filter(part => part !== '' && part !== '.')
  if (parts.includes('..')) return { why: 'leads out of the root' }
  // In the layers of container images '.wh.NAME' removes NAME.
  if (parts.some(part => /^\.wh\.\.{0,2}$/.test(part)))
    return { why: 'removes the directory it is in, or the one above' }
  return parts.join('/')
}

function dangerOf(
  member: TarMember,
  path: string,
  files: ReadonlySet<string>,
  links: ReadonlySet<string>,
): string | undefined {
  if (member.type === 'other') return 'it is of no type that tools agree about'
  if (path === '' && member.type !== 'directory') return 'only a directory can be the root'
  const link = linkAbove(path, links)
  if (link !== undefined) return `it would be written through the symbolic link ${quoteName(link)}`
  if (links.has(path) && member.type !== 'symlink') return 'an earlier member made it a symbolic link'
  if (isDevice(member) && !path.startsWith('dev/')) return 'device nodes are allowed below dev/ only'
  if (member.linkName.includes('\0')) return 'it has a NUL in its target'
  return member.type === 'hardlink' ? dangerOfHardLink(member, path, files, links) : undefined
}

function dangerOfHardLink(
  { linkName }: TarMember,
  path: string,
  files: ReadonlySet<string>,
  links: ReadonlySet<string>,
): string | undefined {
  const target = normalise(linkName)
  if (typeof target !== 'string') return `its target ${quoteName(linkName)} ${target.why}`
  const link = linkAbove(target, links)
  if (link !== undefined) return `its target is behind the symbolic link ${quoteName(link)}`
  if (!files.has(target)) return `its target ${quoteName(linkName)} is no file that stands earlier in the archive`
  if (target === path) return 'it is a hard link to itself'
  return undefined
}

function linkAbove(path: string, links: ReadonlySet<string>): string | undefined {
  if (links.size === 0) return undefined
  for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
    const above = path.slice(0, end)
    if (links.has(above)) return above
  }
  return undefined
}

const isDevice = ({ type }: TarMember): boolean => type === 'char' || type === 'block'
