import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { failureOf, temporaryDir } from '../site/testing.ts'
import { openBuildLog, readBuildLog } from './logs.ts'

const ONE = `sha256:${'1'.repeat(64)}` as const
const TWO = `sha256:${'2'.repeat(64)}` as const

async function build(store: string, name: string, text: string, outcome?: typeof ONE | 'nothing done'): Promise<void> {
  const log = await openBuildLog(store, name)
  log.write(text)
  await log.close(outcome)
}

test('what was printed, in order, text and bytes', async () => {
  const store = await temporaryDir()
  const log = await openBuildLog(store, 'compute')
  log.write('=== packages\n')
  log.write(Buffer.from('Unpacking ü …\n'))
  await log.close(ONE)
  expect(await readBuildLog(store, 'compute', ONE)).toBe('=== packages\nUnpacking ü …\n')
})

test('a long one is all there', async () => {
  const store = await temporaryDir()
  const log = await openBuildLog(store, 'compute')
  for (let line = 0; line < 50_000; line++) log.write(`line ${line}\n`)
  await log.close(ONE)
  const text = await readBuildLog(store, 'compute', ONE)
  expect([text.split('\n').length, text.endsWith('line 49999\n')]).toEqual([50_001, true])
})

test('a build that failed has the last log, until the next build', async () => {
  const store = await temporaryDir()
  await build(store, 'compute', 'broken')
  expect(await readBuildLog(store, 'compute')).toBe('broken')
  await build(store, 'compute', 'fine', ONE)
  expect(await readBuildLog(store, 'compute', ONE)).toBe('fine')
  expect(await failureOf(() => readBuildLog(store, 'compute'))).toBe('IMAGE_UNKNOWN: there is no build log of compute')
})

test('a build that failed takes nothing away from the image before it', async () => {
  const store = await temporaryDir()
  await build(store, 'compute', 'fine', ONE)
  await build(store, 'compute', 'broken')
  expect(await readBuildLog(store, 'compute', ONE)).toBe('fine')
  expect(await readBuildLog(store, 'compute')).toBe('broken')
})

test('a build that did nothing leaves none', async () => {
  const store = await temporaryDir()
  await build(store, 'compute', 'fine', ONE)
  await build(store, 'compute', '', 'nothing done')
  expect(await readdir(join(store, 'logs/compute'))).toEqual([`${'1'.repeat(64)}.log`])
})

test('two builds of one image at once do not mix', async () => {
  const store = await temporaryDir()
  const [one, two] = [await openBuildLog(store, 'compute'), await openBuildLog(store, 'compute')]
  one.write('one\n')
  two.write('two\n')
  one.write('one\n')
  await one.close(ONE)
  await two.close()
  expect(await readBuildLog(store, 'compute', ONE)).toBe('one\none\n')
  expect(await readBuildLog(store, 'compute')).toBe('two\n')
  expect((await readdir(join(store, 'logs/compute'))).length).toBe(2)
})

test('each image and each name has its own', async () => {
  const store = await temporaryDir()
  await build(store, 'compute', 'one', ONE)
  await build(store, 'compute', 'two', TWO)
  await build(store, 'gpu', 'other', ONE)
  expect(
    await Promise.all([
      readBuildLog(store, 'compute', ONE),
      readBuildLog(store, 'compute', TWO),
      readBuildLog(store, 'gpu', ONE),
    ]),
  ).toEqual(['one', 'two', 'other'])
  expect(await failureOf(() => readBuildLog(store, 'gpu', TWO))).toBe('IMAGE_UNKNOWN: there is no build log of gpu')
  expect(await failureOf(() => readBuildLog(store, 'none'))).toBe('IMAGE_UNKNOWN: there is no build log of none')
})

test('is nobody else’s business: programs print what they like', async () => {
  const store = await temporaryDir()
  await build(store, 'compute', 'x', ONE)
  const modes = await Promise.all(
    ['logs/compute', `logs/compute/${'1'.repeat(64)}.log`].map(
      async path => (await stat(join(store, path))).mode & 0o777,
    ),
  )
  expect(modes).toEqual([0o700, 0o600])
})
