import type { ChannelForgotten, ChannelItem, ChannelMoved } from '../../api/schemas.ts'
import { MusterError } from '../../lib/errors.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { shortDigest } from '../images.ts'
import { ago, plural, table } from '../output.ts'

interface ReasonOption {
  readonly reason?: string
}

export async function promote({
  io,
  out,
  args: [image = '', channel = ''],
  options,
}: Call<ReasonOption>): Promise<void> {
  const name = image.split('@')[0] ?? ''
  const body = { image, reason: options.reason ?? '' }
  const moved = await connect(io, options).send<ChannelMoved>('PUT', pathOf(name, channel), body)
  await out.result(moved, () => [movedText(moved)])
}

export async function rollback({ io, out, args: [reference = ''], options }: Call<ReasonOption>): Promise<void> {
  const [name, channel] = parts(reference)
  const body = { reason: options.reason ?? '' }
  const moved = await connect(io, options).send<ChannelMoved>('POST', `${pathOf(name, channel)}/rollback`, body)
  await out.result(moved, () => [movedText(moved)])
}

export async function history({ io, out, args: [reference = ''], options }: Call): Promise<void> {
  const [name, channel] = parts(reference)
  const { moves } = await connect(io, options).get<ChannelItem>(pathOf(name, channel))
  const now = new Date()
  await out.result(moves, () =>
    table(
      ['WHEN', 'DIGEST', 'BY', 'HOW', 'WHY'],
      moves.map(move => [
        `${ago(move.at, now)} ago`,
        shortDigest(move.digest),
        move.by,
        move.back ? 'rolled back' : move.from === undefined ? 'promoted' : `promoted from ${move.from}`,
        move.reason === '' ? '-' : move.reason,
      ]),
    ),
  )
}

export async function channels({ io, out, options }: Call): Promise<void> {
  const { items } = await connect(io, options).get<{ items: ChannelItem[] }>('/api/v1/channels')
  const now = new Date()
  await out.result(items, () =>
    table(
      ['CHANNEL', 'DIGEST', 'SINCE', 'BY', 'WHY'],
      items.map(({ name, channel, digest, moves: [last] }) => [
        `${name}@${channel}`,
        shortDigest(digest),
        last === undefined ? '-' : `${ago(last.at, now)} ago`,
        last?.by ?? '-',
        last === undefined || last.reason === '' ? '-' : last.reason,
      ]),
    ),
  )
}

export async function forget({ io, out, args: [reference = ''], options }: Call): Promise<void> {
  const [name, channel] = parts(reference)
  const gone = await connect(io, options).send<ChannelForgotten>('DELETE', pathOf(name, channel))
  const { length } = gone.freed
  await out.result(gone, () => [
    `${name}@${channel} forgotten${length === 0 ? '' : ` with ${plural(length, 'image')}; muster image gc gives the space back`}`,
  ])
}

const pathOf = (name: string, channel: string): string =>
  `/api/v1/channels/${encodeURIComponent(name)}/${encodeURIComponent(channel)}`

function parts(reference: string): [name: string, channel: string] {
  const [name = '', channel, ...more] = reference.split('@')
  if (name === '' || channel === undefined || channel === '' || more.length > 0)
    throw new MusterError('USAGE', `${reference} is no channel such as compute@stable`)
  return [name, channel]
}

function movedText({ name, channel, digest, before, isUnchanged }: ChannelMoved): string {
  const target = `${name}@${channel}`
  if (isUnchanged) return `${target} points to ${shortDigest(digest)} already`
  return `${target} points to ${shortDigest(digest)}${before === null ? '' : `, before to ${shortDigest(before)}`}; nodes get it with their next boot`
}
