import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { noise } from '../../lib/pack/testing.ts'
import { type Behaviour, MisbehavingServer } from './misbehaving-server.ts'
import { Bench, SHELLS } from './testing.ts'

const IMAGE = noise(5_000_000, 1)
const SHA256 = createHash('sha256').update(IMAGE).digest('hex')

interface Fetched {
  readonly status: number
  /** What is there in the end. */
  readonly file: Buffer | undefined
  readonly problem: string
  readonly said: string
}

const text = (name: string): string => (existsSync(name) ? readFileSync(name, 'utf8') : '')

const isRight = ({ status, file }: Fetched): boolean => status === 0 && file?.equals(IMAGE) === true

const MACHINES = SHELLS.flatMap(shell => [['1', shell] as const, ['4', shell] as const])

describe.concurrent.each(MACHINES)('the root is fetched with %s cores, by %s', (cores, shell) => {
  const fetch = async (servers: readonly string[], stalled = 10_000): Promise<Fetched> => {
    await using bench = await Bench.create(shell)
    const file = `${bench.dir}/work/image`
    const commands = `plan_servers=${servers.join(',')}\ndownload ${SHA256} ${IMAGE.length} "${file}"`
    const { status } = await bench.run('lib patience plan report fetch', commands, {
      STALLED: `${stalled}`,
      CORES: cores,
    })
    return {
      status,
      file: existsSync(file) ? readFileSync(file) : undefined,
      problem: text(`${bench.dir}/work/problem`),
      said: text(`${bench.dir}/run/log`),
    }
  }

  test('from a server that is well', async () => {
    await using server = await MisbehavingServer.start(IMAGE, 'right')
    const fetched = await fetch([server.url])
    expect(isRight(fetched)).toBe(true)
    expect(server.requests).toEqual(['GET /blob/' + SHA256.slice(0, 3) + ' 0 right'])
    expect(fetched.said).toContain('4.7 MiB are here and right')
  })

  test.each<[string, Behaviour[], string[]]>([
    ['a broken connection is taken up again', ['breaks', 'right'], ['0 breaks', '1666666 right']],
    [
      'as often as it takes, while something comes',
      ['breaks', 'breaks', 'breaks', 'right'],
      ['0 breaks', '1666666 breaks', '2777777 breaks', '3518518 right'],
    ],
    ['half of a file is not enough, whatever its headers say', ['short', 'right'], ['0 short', '2500000 right']],
    ['a server that is restarted half way', ['restart', 'right'], ['0 restart', '1666666 right']],
    ['a server that fails first', ['error', 'missing', 'right'], ['0 error', '0 missing', '0 right']],
    ['a wrong bit: all of it again', ['corrupt', 'right'], ['0 corrupt', '0 right']],
    [
      'a wrong bit in what was taken up again',
      ['breaks', 'corrupt', 'right'],
      ['0 breaks', '1666666 corrupt', '0 right'],
    ],
    [
      'a server that starts over when asked to go on, with a wrong byte where all was right',
      ['breaks', 'from-the-start', 'right'],
      ['0 breaks', '1666666 from-the-start', '0 right'],
    ],
    ['more than there should be', ['long', 'right'], ['0 long', '0 right']],
  ])('%s', async (_, behaviours, requests) => {
    await using server = await MisbehavingServer.start(IMAGE, ...behaviours)
    expect(isRight(await fetch([server.url]))).toBe(true)
    expect(server.requests.map(request => request.slice('GET /blob/abc '.length))).toEqual(requests)
  })

  test('a server that says nothing is left alone after a while', async () => {
    await using server = await MisbehavingServer.start(IMAGE, 'silent', 'right')
    expect(isRight(await fetch([server.url], 300))).toBe(true)
    expect(server.requests.length).toBeGreaterThan(1)
  })

  test('from the next server where one is not there, and on from there', async () => {
    const gone = await MisbehavingServer.start(IMAGE)
    await gone[Symbol.asyncDispose]()
    await using breaks = await MisbehavingServer.start(IMAGE, 'breaks', 'error')
    await using right = await MisbehavingServer.start(IMAGE, 'right')
    expect(isRight(await fetch([gone.url, breaks.url, right.url]))).toBe(true)
    expect(breaks.requests).toHaveLength(1)
    expect(right.requests.map(request => request.slice(-'1666666 right'.length))).toEqual(['1666666 right'])
  })

  test('never with a wrong byte: it is deleted, and the attempt fails with the reason and a next step', async () => {
    await using server = await MisbehavingServer.start(IMAGE, 'corrupt')
    const { status, file, problem } = await fetch([server.url])
    expect(status).toBe(1)
    expect(file).toBeUndefined()
    expect(problem).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+ sent other bytes than those of the image: sha256 [0-9a-f]{64} instead of [0-9a-f]{64}; is the boot server well\? look at: muster image verify\n$/,
    )
    expect(server.requests).toHaveLength(3)
  })

  test('a server that has it not ends the attempt, with what it said', async () => {
    await using server = await MisbehavingServer.start(IMAGE, 'missing')
    const { status, problem } = await fetch([server.url])
    expect(status).toBe(1)
    expect(problem).toMatch(/sent 0\.0 MiB of 4\.7 MiB: wget: server returned error: HTTP\/1\.1 404 Not Found; /)
  })
})

describe.each(SHELLS)('memory, in %s', shell => {
  test.each([
    ['1000000', '700000000', 0, 'enough\n'],
    [
      '700000',
      '700000000',
      0,
      'the image has 667.5 MiB, this machine only 683.5 MiB of free memory; give it more memory, or a smaller image\n',
    ],
    ['300000', '700000000', 500_000_000, 'enough\n'],
  ])('%s kB are free, the image has %s bytes, %i are there', async (free, size, had, expected) => {
    await using bench = await Bench.create(shell)
    const commands = [
      'PROC=$WORK',
      `echo 'MemAvailable:   ${free} kB' >"$WORK/meminfo"`,
      'trap \'cat "$WORK/problem" 2>/dev/null || echo enough\' EXIT',
      `require_memory ${size} ${had}`,
    ]
    expect((await bench.run('lib fetch', commands.join('\n'))).output).toBe(expected)
  })
})
