import { MusterError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/suggest.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { table } from '../output.ts'

interface Group {
  readonly name: string
  readonly nodes: string
  readonly count: number
}

const groups = async (call: Call): Promise<Group[]> =>
  (await connect(call.io, call.options).get<{ items: Group[] }>('/api/v1/groups')).items

export async function ls(call: Call): Promise<void> {
  const items = await groups(call)
  await call.out.result(items, () =>
    table(
      ['GROUP', 'COUNT', 'NODES'],
      items.map(({ name, count, nodes }) => [name, String(count), nodes]),
    ),
  )
}

export async function show(call: Call): Promise<void> {
  const [name = ''] = call.args
  const items = await groups(call)
  const found = items.find(group => group.name === name)
  if (found === undefined) {
    throw new MusterError(
      'GROUP_UNKNOWN',
      `no node is in a group ${name}${didYouMean(
        name,
        items.map(group => group.name),
      )}`,
    )
  }
  await call.out.result(found, () => [`${found.name}: ${found.nodes} (${found.count})`])
}
