import { RemoteImages } from '../../api/client-images.ts'
import { type TransferOptions, type Transferred, pullImage, pushImage } from '../../images/transfer.ts'
import { humanSize } from '../../lib/size.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { type DataOption, imageStore, imagesToRead, shortDigest } from '../images.ts'
import type { Io } from '../io.ts'
import { plural } from '../output.ts'

export async function push(call: Call<DataOption>): Promise<void> {
  const {
    io,
    options,
    args: [reference = ''],
  } = call
  const store = await imagesToRead(io, options)
  const moved = await shown(io, 'sending', how => pushImage(remote(call), store, reference, how))
  await report(call, moved, 'sent')
}

export async function pull(call: Call<DataOption>): Promise<void> {
  const {
    io,
    options,
    args: [reference = ''],
  } = call
  const store = await imageStore(io, options)
  const moved = await shown(io, 'fetching', how => pullImage(remote(call), store, reference, how))
  await report(call, moved, 'fetched')
}

const remote = ({ io, options, args: [, server] }: Call<DataOption>): RemoteImages =>
  new RemoteImages(connect(io, server === undefined ? options : { ...options, server }))

const report = ({ out }: Call<DataOption>, moved: Transferred, verb: string): Promise<void> =>
  out.result(moved, () => [
    `${moved.name} ${shortDigest(moved.digest)}  ${moved.blobs === 0 ? 'was there already' : `${plural(moved.blobs, 'artefact')} ${verb}, ${humanSize(moved.bytes)}`}`,
  ])

/** On a terminal, how much of it is done. */
async function shown<Result>(
  io: Io,
  doing: string,
  work: (options: TransferOptions) => Promise<Result>,
): Promise<Result> {
  const isTerminal = io.stderr.isTTY === true
  const progress = (done: number, total: number): void => {
    if (isTerminal) io.stderr.write(`\r${doing} ${humanSize(done)} of ${humanSize(total)}\u001B[K`)
  }
  try {
    return await work({ progress, signal: io.interrupted })
  } finally {
    if (isTerminal) io.stderr.write('\r\u001B[K')
  }
}
