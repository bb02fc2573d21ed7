import type { MachineReply } from '../../api/schemas.ts'
import { MusterError } from '../../lib/errors.ts'
import { humanSize } from '../../lib/size.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { ago, table } from '../output.ts'

type Machines = { readonly items: readonly MachineReply[] }

export async function ls({ io, out, options }: Call<{ all?: boolean }>): Promise<void> {
  const { items } = await connect(io, options).get<Machines>('/api/v1/machines')
  const shown = options.all === true ? items : items.filter(({ node, note }) => node === null || note !== undefined)
  const now = new Date()
  await out.result(shown, () =>
    shown.length === 0
      ? ['no unknown machines']
      : [
          ...table(
            ['ID', 'MAC', 'PLACE', 'MACHINE', 'SERIAL', 'CPUS', 'MEMORY', 'DISKS', 'BMC', 'NODE', 'SEEN', 'NOTE'],
            shown.map(machine => [
              machine.id,
              machine.mac,
              placesOf(machine).join(', ') || '-',
              [machine.facts.vendor, machine.facts.product].filter(Boolean).join(' ') || '-',
              machine.facts.serial || '-',
              machine.facts.cpu.count === 0 ? '-' : String(machine.facts.cpu.count),
              machine.facts.memory === 0 ? '-' : humanSize(machine.facts.memory),
              machine.facts.disks.map(disk => humanSize(disk.size)).join(' + ') || '-',
              machine.facts.bmc?.address || '-',
              machine.node ?? '-',
              `${ago(machine.lastSeen, now)} ago`,
              machine.note ?? '',
            ]),
          ),
          ...(shown.some(machine => machine.node === null)
            ? ['to make one a node: muster discover adopt ID as NODE']
            : []),
        ],
  )
}

/** Where it is known to be, then what else its switches say. */
const placesOf = ({ place, neighbours }: MachineReply): string[] => [
  ...new Set([...(place === undefined ? [] : [place]), ...neighbours].map(at => `${at.switch} ${at.port}`)),
]

export async function adopt({
  io,
  out,
  args: [id = ''],
  rest: [word, name],
  options,
}: Call<{ message?: string }>): Promise<void> {
  const node = word === 'as' ? name : word
  if (node === undefined)
    throw new MusterError('USAGE', 'say which node it is to be', { hint: 'muster discover adopt ID as n017' })
  const client = connect(io, options)
  const done = await client.send<{ node: string; commit: string; generation: number }>(
    'POST',
    `/api/v1/machines/${await idOf(client, id)}/adopt`,
    {
      node,
      ...(options.message !== undefined && { message: options.message }),
    },
  )
  await out.result(done, () => [
    `${id} is ${done.node} now: commit ${done.commit.slice(0, 10)}, generation ${done.generation}; it goes on booting`,
    `watch it: muster node timeline ${done.node}`,
  ])
}

export async function forget({ io, out, args: [id = ''], options }: Call): Promise<void> {
  const client = connect(io, options)
  await client.send('DELETE', `/api/v1/machines/${await idOf(client, id)}`)
  await out.result({ forgotten: id }, () => [
    `${id} is forgotten; if it still runs the discovery system it will be back`,
  ])
}

/** An id, a MAC or a serial number, as long as it means one machine. */
async function idOf(client: ReturnType<typeof connect>, text: string): Promise<string> {
  const { items } = await client.get<Machines>('/api/v1/machines')
  const wanted = text.toLowerCase()
  const found = items.filter(
    ({ id, mac, facts }) => id.startsWith(wanted) || mac === wanted || (text !== '' && facts.serial === text),
  )
  const [first, second] = found
  if (first === undefined) throw new MusterError('MACHINE_UNKNOWN', `no machine ${text} was discovered`)
  if (second !== undefined)
    throw new MusterError('MACHINE_UNKNOWN', `${text} could be ${found.map(({ id }) => id).join(' or ')}`, {
      hint: 'write more of the id',
    })
  return first.id
}
