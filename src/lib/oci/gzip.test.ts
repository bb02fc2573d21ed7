import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { exec } from '../exec.ts'
import { BlockGzip } from './gzip.ts'

async function compress(...chunks: readonly Buffer[]): Promise<Buffer> {
  const written: Buffer[] = []
  const gzip = new BlockGzip(async chunk => void written.push(chunk))
  for (const chunk of chunks) await gzip.write(chunk)
  await gzip.end()
  return Buffer.concat(written)
}

const MIB = 1024 * 1024
const CONTENT = Buffer.concat(Array.from({ length: 9 }, (_, n) => Buffer.alloc(MIB, `line ${n}, much like others\n`)))
const inPieces = (length: number): Buffer[] =>
  Array.from({ length: Math.ceil(CONTENT.length / length) }, (_, n) => CONTENT.subarray(n * length, (n + 1) * length))

test('Node and gzip read it', async () => {
  const compressed = await compress(CONTENT)
  expect(gunzipSync(compressed).equals(CONTENT)).toBe(true)
  const { stdout } = await exec('gzip', ['-dc'], { input: compressed })
  expect(stdout.equals(CONTENT)).toBe(true)
})

test.each([1000, MIB - 1, 4 * MIB, 5 * MIB, 9 * MIB])('pieces of %i bytes become the same bytes', async length => {
  expect((await compress(...inPieces(length))).equals(await compress(CONTENT))).toBe(true)
})

test('blocks of 4 MiB, each without a time', async () => {
  const compressed = await compress(CONTENT)
  const header = Buffer.from('1f8b0800000000000003', 'hex')
  const starts = []
  for (let at = compressed.indexOf(header); at !== -1; at = compressed.indexOf(header, at + 1)) starts.push(at)
  expect(starts).toHaveLength(3)
  expect(starts[0]).toBe(0)
})

test('a failing writer is heard', async () => {
  const gzip = new BlockGzip(() => Promise.reject(new Error('disk full')))
  await expect(gzip.write(CONTENT).then(() => gzip.end())).rejects.toThrow('disk full')
})
