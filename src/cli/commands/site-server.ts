import { siteInvalid } from '../../site/problems.ts'
import type { AppliedReply, PlanReply } from '../../api/schemas.ts'
import type { Generation } from '../../control/generations.ts'
import type { SiteDiff } from '../../site/diff.ts'
import { MusterError } from '../../lib/errors.ts'
import { confirm, patiently } from '../ask.ts'
import { connect, siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import type { GlobalOptions, Io } from '../io.ts'
import { wholeNumber } from '../numbers.ts'
import { type Output, ago, plural, table } from '../output.ts'

const SHOWN = 40

export async function diff(call: Call<{ against?: string; exitCode?: boolean }>): Promise<number> {
  const { io, out, options } = call
  if (options.against !== undefined) {
    const found = await diffAgainst(call, options.against)
    await out.result(found, () => diffLines(out, found))
    return options.exitCode === true && found.nodes > 0 ? 1 : 0
  }
  const plan = await patiently(io, 'comparing', connect(io, options).get<PlanReply>('/api/v1/site/plan'))
  await out.result(plan, () => [
    ...diffLines(out, plan.diff),
    ...(plan.diff.nodes === 0 ? [] : ['nothing reboots by itself; to make it the desired state: muster site apply']),
  ])
  return options.exitCode === true && plan.diff.nodes > 0 ? 1 : 0
}

/** Two versions of the files compared here, without a server. */
async function diffAgainst({ io, options }: Call<{ against?: string }>, revision: string): Promise<SiteDiff> {
  const dir = await siteDir(io, options)
  const [git, { gitSource }, { openSite }, { directorySource }, { diffSites }, { locate }] = await Promise.all([
    import('../../site/git.ts'),
    import('../../site/git-source.ts'),
    import('../../site/site.ts'),
    import('../../site/source.ts'),
    import('../../site/diff.ts'),
    import('../../site/explain.ts'),
  ])
  const repo = await git.openRepository(dir)
  const commit = await git.resolveCommit(repo, revision)
  if (commit === undefined)
    throw new MusterError('USAGE', `${revision} is no commit of this repository`, { hint: 'see git log' })
  const before = await openSite(gitSource(repo, commit))
  const after = await openSite(await directorySource(dir), before)
  for (const site of [before, after]) if (site.files.problems.length > 0) throw siteInvalid(site.files.problems)
  const values = (site: typeof before) =>
    new Map([...site.nodes.values()].map(node => [node.name, site.resolve(node).value]))
  return diffSites(values(before), values(after), (name, path) => locate(after, name, path))
}

export async function apply({ io, out, options }: Call<{ yes?: boolean; allowDirty?: boolean }>): Promise<void> {
  const client = connect(io, options)
  const allowDirty = options.allowDirty ?? false
  const plan = await patiently(io, 'comparing', client.get<PlanReply>('/api/v1/site/plan', { allowDirty }))
  const asks = plan.diff.nodes > 0 && options.yes !== true
  if (asks && io.stdin.isTTY === true) for (const line of diffLines(out, plan.diff)) out.note(line)
  if (asks) await confirm(io, `apply to ${plural(plan.diff.nodes, 'node')}?`, options.yes)
  const { tree, generation } = plan
  const request = client.send<AppliedReply>('POST', '/api/v1/site/apply', { allowDirty, expect: { tree, generation } })
  const applied = await patiently(io, 'applying', request)
  await out.result(applied, () => (asks ? [appliedLine(applied)] : appliedLines(out, applied)))
}

export async function log({ io, out, options }: Call<{ limit: string }>): Promise<void> {
  const limit = wholeNumber(options.limit, 1)
  const { items } = await connect(io, options).get<{ items: Generation[] }>('/api/v1/site/generations')
  const shown = items.slice(0, limit)
  const now = new Date()
  await out.result(shown, () =>
    table(
      ['GENERATION', 'COMMIT', 'NODES', 'APPLIED', 'BY', 'AUTHOR', 'SUBJECT'],
      shown.map(one => [
        String(one.number),
        one.commit.slice(0, 10) + (one.dirty ? '+' : ''),
        String(one.nodes),
        `${ago(one.appliedAt, now)} ago`,
        one.appliedBy,
        one.author,
        one.subject,
      ]),
    ),
  )
}

export async function revert({ io, out, args: [number], options }: Call<{ yes?: boolean }>): Promise<void> {
  const client = connect(io, options)
  const { items } = await client.get<{ items: Generation[] }>('/api/v1/site/generations')
  const target = targetOf(items, number)
  await confirm(
    io,
    `go back to generation ${target.number} (${target.commit.slice(0, 10)}: ${target.subject})?`,
    options.yes,
  )
  const applied = await patiently(
    io,
    'reverting',
    client.send<AppliedReply>('POST', '/api/v1/site/revert', { generation: target.number }),
  )
  await out.result(applied, () => appliedLines(out, applied))
}

function targetOf(items: readonly Generation[], number: string | undefined): Generation {
  const wanted = number === undefined ? items[1] : items.find(one => String(one.number) === number)
  if (wanted === undefined)
    throw new MusterError(
      'GENERATION_UNKNOWN',
      number === undefined ? 'there is no generation before this one' : `there is no generation ${number}`,
    )
  return wanted
}

/** What an edit is followed by when it should take effect at once. */
export const applyAfterEdit = (io: Io, options: GlobalOptions): Promise<AppliedReply> =>
  connect(io, options).send<AppliedReply>('POST', '/api/v1/site/apply', {})

export const appliedLines = (out: Output, applied: AppliedReply): string[] => [
  ...diffLines(out, applied.diff),
  appliedLine(applied),
]

const appliedLine = ({ generation, unchanged }: AppliedReply): string =>
  unchanged
    ? `nothing to do: generation ${generation.number} (${generation.commit.slice(0, 10)}) is in force`
    : `generation ${generation.number} applied: commit ${generation.commit.slice(0, 10)}${generation.dirty ? ' and uncommitted changes' : ''}, ${plural(generation.nodes, 'node')} changed`

function diffLines(out: Output, found: SiteDiff): string[] {
  if (found.nodes === 0) return ['no difference']
  const shown = found.changes.slice(0, SHOWN)
  const [, ...rows] = table(
    ['', '', '', ''],
    shown.map(change => [change.nodes, change.path, change.summary, change.at ?? '']),
  )
  return [
    ...(found.added === '' ? [] : [out.style('green', `+ ${found.added}`)]),
    ...(found.removed === '' ? [] : [out.style('red', `- ${found.removed}`)]),
    ...rows,
    ...(found.changes.length > SHOWN
      ? [`… and ${plural(found.changes.length - SHOWN, 'more change')}; all of them with -o json`]
      : []),
  ]
}
