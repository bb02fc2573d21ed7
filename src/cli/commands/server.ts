import { resolve } from 'node:path'
import type { ApiClient } from '../../api/client.ts'
import type { EventReply } from '../../api/schemas.ts'
import type { Generation } from '../../control/generations.ts'
import { MusterError } from '../../lib/errors.ts'
import { patiently } from '../ask.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { wholeNumber } from '../numbers.ts'
import { plural, table } from '../output.ts'

interface Status {
  readonly version: string
  readonly site: string
  readonly revision: number
  readonly nodes: number
  readonly generation: Generation | null
}

export async function status({ io, out, options }: Call): Promise<void> {
  const found = await connect(io, options).get<Status>('/api/v1/status')
  const { generation } = found
  await out.result(found, () => [
    `muster ${found.version}, revision ${found.revision}`,
    `site ${found.site}: ${plural(found.nodes, 'node')}`,
    generation === null
      ? 'nothing applied yet; next: muster site diff, then muster site apply'
      : `generation ${generation.number}: commit ${generation.commit.slice(0, 10)} "${generation.subject}", applied ${generation.appliedAt} by ${generation.appliedBy}`,
  ])
}

export async function events({
  io,
  out,
  options,
}: Call<{ follow?: boolean; after?: string; kind?: string; limit: string }>): Promise<void> {
  const client = connect(io, options)
  const limit = wholeNumber(options.limit, 1)
  const query = { kind: options.kind, after: options.after === undefined ? undefined : wholeNumber(options.after, 0) }
  if (options.follow === true) {
    for await (const event of client.events(query)) out.line(out.isForPeople ? eventLine(event) : JSON.stringify(event))
    throw new MusterError('SERVER_UNREACHABLE', 'the server closed the stream')
  }
  const order = options.after === undefined ? 'newest' : 'oldest'
  const { items } = await client.get<{ items: EventReply[] }>('/api/v1/events', { ...query, limit, order })
  const shown = order === 'newest' ? items.toReversed() : items
  await out.result(shown, () => shown.map(eventLine))
}

const eventLine = (event: EventReply): string =>
  [String(event.revision).padStart(6), event.time, event.kind.padEnd(14), event.actor, event.nodes, summaryOf(event)]
    .filter(part => part !== undefined && part !== '')
    .join('  ')

function summaryOf({ data }: EventReply): string {
  if (typeof data !== 'object' || data === null) return ''
  const said = data as Record<string, unknown>
  const words = (key: string): string => (typeof said[key] === 'string' ? said[key] : '')
  const generation = typeof said['number'] === 'number' ? `generation ${said['number']}` : ''
  return [generation, words('message') || words('subject') || words('name') || words('reason'), words('role')]
    .filter(part => part !== '')
    .join(' ')
}

export async function audit({ io, out, options }: Call<{ limit: string }>): Promise<void> {
  const limit = wholeNumber(options.limit, 1)
  const changes = await newestChanges(connect(io, options), limit)
  await out.result(changes, () =>
    table(
      ['TIME', 'WHO', 'FROM', 'WHAT', 'NODES', 'DETAIL'],
      changes.map(event => [
        event.time,
        event.actor,
        event.from ?? '',
        event.kind,
        event.nodes || '-',
        summaryOf(event),
      ]),
    ),
  )
}

/** Events that somebody caused, newest first. Far more of them come from nodes: those are passed over page by page. */
async function newestChanges(client: ApiClient, limit: number): Promise<EventReply[]> {
  const changes: EventReply[] = []
  let before: number | undefined
  do {
    const page: { items: EventReply[]; next: number | null } = await client.get('/api/v1/events', {
      order: 'newest',
      before,
    })
    changes.push(...page.items.filter(event => event.from !== undefined))
    before = page.next ?? undefined
  } while (before !== undefined && changes.length < limit)
  return changes.slice(0, limit)
}

export async function backup({ io, out, args: [file = ''], options }: Call): Promise<void> {
  await patiently(io, 'saving', connect(io, options).download('/api/v1/backup', resolve(io.cwd, file)))
  await out.result({ file }, () => [`saved to ${file}; put it back with: muster restore ${file}`])
}
