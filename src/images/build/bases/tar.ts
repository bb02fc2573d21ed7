import { createReadStream } from 'node:fs'
import { PassThrough, type Readable } from 'node:stream'
import { MusterError } from '../../../lib/errors.ts'
import { exec } from '../../../lib/exec.ts'
import { checkArchive } from '../../../lib/tar/check.ts'
import { type TarOptions, readTarHeaders } from '../../../lib/tar/read.ts'
import { hashFile } from '../../store/disk.ts'
import { type SandboxOptions, withTool } from '../sandbox.ts'
import { type BaseFacts, type PinnedBase, damaged, existing } from './base.ts'

/** An archive of a root. Its list is read before anything is unpacked. */
export async function tarBase(facts: BaseFacts, path: string): Promise<PinnedBase> {
  const file = await existing(facts, path, 'archive')
  const { sha256 } = await hashFile(file)
  return {
    request: { tar: sha256 },
    pin: () => Promise.resolve(sha256),
    stage: pin => ({
      title: 'from tar',
      inputs: { tar: pin },
      make: ({ upper, sandbox }) => unpackTar(file, path, upper, sandbox),
    }),
  }
}

async function unpackTar(file: string, shown: string, target: string, sandbox: SandboxOptions): Promise<void> {
  const decompress = await checkTar(file, shown, sandbox)
  const argv = [
    'tar',
    '--extract',
    '--file=/run/archive',
    '--directory=/target',
    '--numeric-owner',
    '--preserve-permissions',
    '--same-owner',
  ]
  const more = [
    '--xattrs',
    '--xattrs-include=security.capability',
    '--xattrs-include=user.*',
    '--no-overwrite-dir',
    '--exclude=./dev/*',
    '--exclude=dev/*',
    '--delay-directory-restore',
  ]
  await withTool(
    target,
    [...argv, ...more, ...(decompress === undefined ? [] : [`--use-compress-program=${decompress}`])],
    {
      ...sandbox,
      readable: { '/run/archive': file },
    },
  ).catch((error: unknown) => {
    throw damaged(error, shown, 'archive that tar can unpack')
  })
}

/**
 * Refuses an archive that would touch anything outside the directory it is unpacked into, under the name people know it
 * by; says what decompresses it.
 */
export async function checkTar(
  file: string,
  shown: string,
  sandbox: SandboxOptions,
  options: TarOptions = {},
): Promise<string | undefined> {
  const program = await decompressor(file)
  const stream =
    program === undefined ? createReadStream(file, { highWaterMark: 1 << 20 }) : decompressed(program, file, sandbox)
  await checkArchive(readTarHeaders(stream, options)).catch((error: unknown) => {
    if (!(error instanceof MusterError)) throw error
    throw new MusterError(error.code, `${shown}: ${error.message}`, { details: error.details, cause: error })
  })
  return program
}

const MAGIC: readonly (readonly [bytes: readonly number[], program: string])[] = [
  [[0x1f, 0x8b], 'gzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'zstd'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'xz'],
  [[0x42, 0x5a, 0x68], 'bzip2'],
]

async function decompressor(file: string): Promise<string | undefined> {
  const stream = createReadStream(file, { end: 7 })
  let head = Buffer.alloc(0)
  for await (const chunk of stream) head = Buffer.concat([head, chunk as Buffer])
  return MAGIC.find(([bytes]) => bytes.every((byte, at) => head[at] === byte))?.[1]
}

async function* decompressed(program: string, file: string, sandbox: SandboxOptions): AsyncGenerator<Uint8Array> {
  const pipe = new PassThrough({ highWaterMark: 1 << 20 })
  const work = exec(program, ['-dc', file], {
    timeout: 0,
    stdoutTo: pipe,
    ...(sandbox.signal && { signal: sandbox.signal }),
  })
  const failed = work.catch((error: unknown) => {
    pipe.destroy(new MusterError('ARCHIVE_INVALID', `${program} cannot read it`, { cause: error }))
  })
  yield* pipe as Readable as AsyncIterable<Uint8Array>
  await failed
}
