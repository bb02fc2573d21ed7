import { MusterError } from '../../lib/errors.ts'
import { type GroupResolver, NodeSet, parseNodeSet } from '../../lib/nodeset/index.ts'
import { findSiteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { type GlobalOptions, type Io, readAll } from '../io.ts'

interface SetOptions {
  readonly exclude?: string
  readonly separator?: string
}

export async function foldSets(call: Call<SetOptions>): Promise<void> {
  const set = await chosen(call)
  await call.out.result(String(set), () => [String(set)])
}

export async function expandSets(call: Call<SetOptions>): Promise<void> {
  const names = [...(await chosen(call))]
  const separator = (call.options.separator ?? ' ').replaceAll('\\n', '\n').replaceAll('\\t', '\t')
  await call.out.result(names, () => [names.join(separator)])
}

export async function countSets(call: Call<SetOptions>): Promise<void> {
  const { size } = await chosen(call)
  await call.out.result(size, () => [String(size)])
}

export async function diffSets({ io, out, args: [a = '', b = ''], options }: Call): Promise<number> {
  const [left, right] = [await parse(io, options, a), await parse(io, options, b)]
  const [removed, added] = [left.difference(right), right.difference(left)]
  await out.result({ removed: String(removed), added: String(added) }, () => [
    ...(removed.size > 0 ? [out.style('red', `- ${removed}`)] : []),
    ...(added.size > 0 ? [out.style('green', `+ ${added}`)] : []),
  ])
  return removed.size + added.size > 0 ? 1 : 0
}

async function chosen({ io, rest, options }: Call<SetOptions>): Promise<NodeSet> {
  const fromStdin = rest.length === 0 || rest.includes('-')
  if (fromStdin && io.stdin.isTTY === true) throw new MusterError('USAGE', 'no node set was given')
  const texts = [...rest.filter(text => text !== '-'), ...(fromStdin ? [await readAll(io.stdin)] : [])]
  let set = NodeSet.empty
  for (const text of texts) if (text.trim() !== '') set = set.union(await parse(io, options, text))
  return options.exclude === undefined ? set : set.difference(await parse(io, options, options.exclude))
}

/** The site is only read when the text speaks of groups or uses wildcards. */
async function parse(io: Io, options: GlobalOptions, text: string): Promise<NodeSet> {
  return parseNodeSet(text, /[@*?]/.test(text) ? { groups: await siteGroups(io, options) } : {})
}

async function siteGroups(io: Io, options: GlobalOptions): Promise<GroupResolver> {
  const dir = await findSiteDir(io, options)
  if (dir === undefined) throw new MusterError('SITE_NOT_FOUND', 'groups and wildcards need a site to look in')
  const [{ openSite }, { directorySource }] = await Promise.all([
    import('../../site/site.ts'),
    import('../../site/source.ts'),
  ])
  return (await openSite(await directorySource(dir))).sets
}
