import type { NodeDetail, NodeItem, SwapReply } from '../../api/schemas.ts'
import { MusterError } from '../../lib/errors.ts'
import { fold } from '../../lib/nodeset/index.ts'
import { flatten, showValue } from '../../site/paths.ts'
import { patiently } from '../ask.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { ago, table } from '../output.ts'

const PAGE = 50_000

export async function ls({ io, out, args: [nodes], options }: Call<{ long?: boolean }>): Promise<void> {
  const items: NodeItem[] = []
  const pages = connect(io, options).pages<NodeItem>('/api/v1/nodes', { nodes, limit: PAGE })
  const collect = async (): Promise<void> => {
    for await (const page of pages) for (const item of page) items.push(item)
  }
  await patiently(io, 'listing nodes', collect())
  if (nodes !== undefined && items.length === 0) throw new MusterError('NODE_UNKNOWN', `no such node: ${nodes}`)
  await out.result(items, () => (options.long === true ? longTable(items) : foldedTable(items)))
}

const columnsOf = ({ observed, image, cluster, groups }: NodeItem): string[] => [
  observed.boot?.value ?? 'unknown',
  image ?? '-',
  cluster,
  groups.join(',') || '-',
]

function foldedTable(items: readonly NodeItem[]): string[] {
  const alike = new Map<string, { columns: string[]; names: string[] }>()
  for (const item of items) {
    const columns = columnsOf(item)
    const key = columns.join('\0')
    const entry = alike.get(key)
    if (entry === undefined) alike.set(key, { columns, names: [item.name] })
    else entry.names.push(item.name)
  }
  const rows = [...alike.values()].map(({ columns, names }) => [fold(names), String(names.length), ...columns])
  return table(['NODES', 'COUNT', 'STATE', 'IMAGE', 'CLUSTER', 'GROUPS'], rows)
}

const longTable = (items: readonly NodeItem[]): string[] =>
  table(
    ['NODE', 'ADDRESS', 'STATE', 'IMAGE', 'CLUSTER', 'GROUPS'],
    items.map(item => [item.name, item.address ?? '-', ...columnsOf(item)]),
  )

export async function show({ io, out, args: [name = ''], options }: Call): Promise<void> {
  const node = await connect(io, options).get<NodeDetail>(`/api/v1/nodes/${encodeURIComponent(name)}`)
  const now = new Date()
  await out.result(node, () => [
    `${out.style('bold', node.name)}  desired state of revision ${node.revision}`,
    ...(node.swap === undefined ? [] : swapLines(node.swap)),
    ...table(
      ['PATH', 'VALUE'],
      [...flatten(node.desired)].map(([path, value]) => [path.join('.'), showValue(value)]),
    ),
    '',
    ...(Object.keys(node.observed).length === 0
      ? ['observed: nothing yet']
      : table(
          ['OBSERVED', 'VALUE', 'SINCE', 'REASON'],
          Object.entries(node.observed).flatMap(([field, seen]) =>
            seen === undefined ? [] : [[field, seen.value, `${ago(seen.since, now)} ago`, seen.reason ?? '']],
          ),
        )),
  ])
}

export async function swap({
  io,
  out,
  args: [name = '', other],
  options,
}: Call<{ undo?: boolean; why?: string }>): Promise<void> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}/swap`
  const client = connect(io, options)
  if (options.undo === true) {
    if (other !== undefined) throw new MusterError('USAGE', '--undo needs only one of the two nodes')
    const { swap: left } = await client.send<{ swap: SwapReply | null }>('DELETE', path)
    await out.result({ swap: left }, () => [
      ...(left === null ? [`${name} has its own machine again`] : swapLines(left)),
    ])
    return
  }
  if (other === undefined)
    throw new MusterError('USAGE', 'say which node it changes machines with', { hint: 'muster node swap n012 spare3' })
  const body = { with: other, ...(options.why !== undefined && { why: options.why }) }
  const done = await client.send<SwapReply>('POST', path, body)
  await out.result(done, () => [...swapLines(done), `to take it back: muster node swap ${name} --undo`])
}

function swapLines({ node, with: other, by, at, why, isActive, running }: SwapReply): string[] {
  const waits = running.map(({ mac, node: runsAs }) => `  ${mac} runs as ${runsAs} until it boots`)
  const words = `${node} and ${other} have changed machines: ${by}, ${at}${why === undefined ? '' : `: ${why}`}`
  return [isActive ? words : `${node} and ${other} get their own machines back`, ...waits]
}
