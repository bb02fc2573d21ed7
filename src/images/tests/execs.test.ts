import { chmod, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { directoryOf, temporaryDir } from '../../site/testing.ts'
import type { ExecTest } from './check.ts'
import { type ExecWorld, runExec } from './execs.ts'
import { openRoot } from './places/root.ts'
import { busyboxRoot } from './places/testing.ts'
import { TestResult } from './report.ts'
import type { OpenSubject } from './subject.ts'

const signal = new AbortController().signal
let tree: string
let tests: string
let work: string

beforeEach(async () => {
  tree = await busyboxRoot(await temporaryDir())
  tests = await directoryOf({
    'check.sh': '#!/bin/sh\necho "checked $*"\n',
    'points.tap': '1..2\nok 1 - one\nnot ok 2 - two\n',
    'good.tap': '1..1\nok 1 - one\n',
    'cases.xml': '<testsuite><testcase name="a" time="2.5"/><testcase name="b"><skipped/></testcase></testsuite>',
    'broken.xml': '<testsuite>\n<testcase name="a">',
    'scap.xml':
      '<TestResult><rule-result idref="r" severity="low"><result>fail</result></rule-result><score maximum="100">50</score></TestResult>',
  })
  await chmod(join(tests, 'check.sh'), 0o755)
  work = await temporaryDir()
})

async function world(): Promise<ExecWorld> {
  const dir = await temporaryDir()
  const subject = await openRoot(tree, { work: dir, signal, tests })
  onTestFinished(() => subject[Symbol.asyncDispose]())
  return { subject, tests, tree }
}

const exec = (run: ExecTest['run'], more: Partial<ExecTest> = {}): ExecTest => ({
  id: 'all.yaml: exec it',
  file: 'all.yaml',
  line: 1,
  place: 'root',
  name: 'it',
  run,
  reads: 'exit',
  on: 'inside',
  timeout: 60_000,
  exitCodes: [0],
  ...more,
})

const moved = (word: string): string => word.replaceAll('/run/muster-tests', '/etc/muster-tests')

const scap = (minScore: number): ExecTest => exec('cat scap.xml; exit 2', { reads: 'oscap', minScore })

const outside = (run: ExecTest['run'], more: Partial<ExecTest> = {}): ExecTest => exec(run, { on: 'outside', ...more })

/** Results without what they have in common. */
async function resultsOf(one: ExecTest, where?: ExecWorld): Promise<Partial<TestResult>[]> {
  const results = await runExec(one, where ?? (await world()), { work, signal })
  return results.map(result => {
    const { id, place, kind, name, seconds, ...rest } = TestResult.parse(result)
    expect([id, place, kind, name]).toEqual(['all.yaml: exec it', 'root', 'exec', 'it'])
    expect(seconds).toBeGreaterThanOrEqual(0)
    return rest
  })
}

describe('an exit code', () => {
  test('passes where it is one of those wanted', async () => {
    expect(await resultsOf(exec('exit 4', { exitCodes: [0, 4] }))).toEqual([
      { attribute: 'exit-code', status: 'passed', expected: '0 or 4', found: '4' },
    ])
  })

  test('fails otherwise, with the end of what was said', async () => {
    expect(await resultsOf(exec('echo said; exit 1'))).toEqual([
      { attribute: 'exit-code', status: 'failed', expected: '0', found: '1', message: 'said' },
    ])
    expect(await resultsOf(exec('for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $n >&2; done; echo out; false'))).toEqual(
      [
        {
          attribute: 'exit-code',
          status: 'failed',
          expected: '0',
          found: '1',
          message: '3\n4\n5\n6\n7\n8\n9\n10\n11\n12',
        },
      ],
    )
  })

  test('of what takes too long is 124', async () => {
    expect(await resultsOf(exec(['sleep', '86395'], { timeout: 300 }))).toEqual([
      { attribute: 'exit-code', status: 'failed', expected: '0', found: '124', message: 'was stopped after 0.3 s' },
    ])
    expect(await resultsOf(exec('echo mine; exit 124'))).toEqual([
      { attribute: 'exit-code', status: 'failed', expected: '0', found: '124', message: 'mine' },
    ])
  })
})

describe('a program inside', () => {
  test('runs among the files of the tests, and sees nothing but the image', async () => {
    const script =
      'test "$(./check.sh a)" = "checked a" && test "$PWD $MUSTER_TESTS" = "/run/muster-tests /run/muster-tests"'
    expect(await resultsOf(exec(`${script} && test ! -e /usr`))).toMatchObject([{ status: 'passed' }])
    expect(await resultsOf(exec(['./check.sh', 'a']))).toMatchObject([{ status: 'passed' }])
  })

  test('gets a copy of the tests where the folder cannot be shown, once', async () => {
    const { subject } = await world()
    // Another place: the files of the tests are somewhere else, and /run stays as it is between commands.
    const asked: string[][] = []
    const copying: OpenSubject = {
      place: 'vm',
      run: (argv, { cwd, ...options } = {}) => {
        asked.push([...argv])
        return subject.run(argv.map(moved), { ...options, ...(cwd !== undefined && { cwd: moved(cwd) }) })
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
    const place = { subject: copying, tests, tree }
    const script = './check.sh a && cat points.tap && test ! -w points.tap -o "$(id -u)" = 0'
    expect(await resultsOf(exec(script), place)).toMatchObject([{ status: 'passed' }])
    const commands = asked.length
    expect(await resultsOf(exec('./check.sh b'), place)).toMatchObject([{ status: 'passed' }])
    expect(asked.length - commands).toBe(2)
  })

  test('whose place has ended has failed', async () => {
    const ended: OpenSubject = {
      place: 'root',
      run: () => Promise.reject(new Error('the container has ended')),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
    expect(await resultsOf(exec('true'), { subject: ended, tests, tree })).toEqual([
      { attribute: 'run', status: 'failed', message: 'the container has ended' },
    ])
  })
})

describe('a program outside', () => {
  test('is one of this machine, among the files of the tests', async () => {
    const script =
      'test -e /usr && test "$(./check.sh a)" = "checked a" && ls -L "$MUSTER_ROOT/bin/sh" && test "$PWD" = "$MUSTER_TESTS"'
    expect(await resultsOf(outside(script))).toMatchObject([{ status: 'passed' }])
  })

  test('can change neither the image nor the tests', async () => {
    const script = 'touch "$MUSTER_ROOT/etc/evil" "$MUSTER_TESTS/evil" ./evil'
    const [result] = await resultsOf(outside(script))
    expect(result).toMatchObject({ status: 'failed', found: '1' })
    expect(result?.message?.match(/Read-only file system/g)).toHaveLength(3)
  })

  test('knows the container, and nothing of our environment', async () => {
    process.env['MUSTER_TOKEN_FOR_TEST'] = 'secret'
    onTestFinished(() => {
      delete process.env['MUSTER_TOKEN_FOR_TEST']
    })
    const script = 'test "$MUSTER_PID" = 4711 && ! env | grep secret'
    expect(await resultsOf(outside(script), { ...(await world()), pid: 4711 })).toMatchObject([{ status: 'passed' }])
  })

  test('has an exit code, also when it is ended by a signal or takes too long', async () => {
    expect(await resultsOf(outside('kill -9 $$'))).toMatchObject([{ status: 'failed', found: '137' }])
    expect(await resultsOf(outside(['sleep', '86394'], { timeout: 300 }))).toMatchObject([
      { status: 'failed', found: '124', message: 'was stopped after 0.3 s' },
    ])
    expect(await resultsOf(outside(['nothing-of-that-name']))).toMatchObject([{ status: 'failed', found: '127' }])
  })

  test('leaves nothing mounted', async () => {
    await resultsOf(outside('true'))
    expect(await readFile('/proc/self/mounts', 'utf8')).not.toContain(tree)
  })
})

describe('what a program prints is read', () => {
  test('as TAP', async () => {
    expect(await resultsOf(exec('cat points.tap; exit 1', { reads: 'tap' }))).toEqual([
      { attribute: '1 one', status: 'passed' },
      { attribute: '2 two', status: 'failed', expected: 'ok', found: 'not ok' },
    ])
  })

  test('as JUnit, with its own times', async () => {
    const results = await runExec(exec(['cat', 'cases.xml'], { reads: 'junit' }), await world(), { work, signal })
    expect(results.map(({ attribute, status, seconds }) => [attribute, status, seconds])).toEqual([
      ['a', 'passed', 2.5],
      ['b', 'skipped', 0],
    ])
  })

  test('as results of OpenSCAP, which ends with 2 where rules failed', async () => {
    expect(await resultsOf(scap(50))).toMatchObject([
      { attribute: 'score', status: 'passed', expected: 'at least 50', found: '50' },
      { attribute: 'r', status: 'skipped', found: 'fail' },
    ])
    expect((await resultsOf(scap(51))).map(({ status }) => status)).toEqual(['failed', 'skipped'])
  })

  test('and a bad exit code is a failure where nothing else says why', async () => {
    expect(await resultsOf(exec('cat good.tap; echo oh >&2; exit 7', { reads: 'tap' }))).toEqual([
      { attribute: '1 one', status: 'passed' },
      { attribute: 'exit-code', status: 'failed', expected: '0', found: '7', message: 'oh' },
    ])
  })

  test('and so is a time-out, always', async () => {
    expect(await resultsOf(exec('cat points.tap; sleep 86393', { reads: 'tap', timeout: 5000 }))).toEqual([
      { attribute: '1 one', status: 'passed' },
      { attribute: '2 two', status: 'failed', expected: 'ok', found: 'not ok' },
      { attribute: 'exit-code', status: 'failed', expected: '0', found: '124', message: 'was stopped after 5 s' },
    ])
  })

  test('and what is not what it should be is a failure', async () => {
    expect(await resultsOf(exec(['cat', 'broken.xml'], { reads: 'junit' }))).toEqual([
      { attribute: 'output', status: 'failed', message: 'line 2: <testcase> is not closed' },
    ])
    expect(await resultsOf(exec(['echo', 'hello'], { reads: 'oscap' }))).toEqual([
      { attribute: 'output', status: 'failed', message: 'line 1: has text outside of its root' },
    ])
  })
})

test('results are told as they come, and an interruption is none', async () => {
  const told: string[] = []
  const controller = new AbortController()
  const place = await world()
  const options = {
    work,
    signal: controller.signal,
    onResult: (result: TestResult) => void told.push(result.attribute),
  }
  await runExec(exec(['cat', 'points.tap'], { reads: 'tap' }), place, options)
  expect(told).toEqual(['1 one', '2 two'])
  controller.abort()
  await expect(runExec(exec('true', { on: 'outside' }), place, options)).rejects.toMatchObject({ name: 'AbortError' })
  expect(told).toEqual(['1 one', '2 two'])
})

test('a tree and tests whose paths have odd characters', async () => {
  const odd = join(await temporaryDir(), 'a: b,c\\d "e"')
  await mkdir(odd)
  tests = join(odd, 'tests')
  await mkdir(tests)
  tree = await busyboxRoot(join(odd, 'image/root'))
  expect(
    await resultsOf(exec('test "$(cat "$MUSTER_ROOT/bin/busybox" | wc -c)" -gt 9', { on: 'outside' })),
  ).toMatchObject([{ status: 'passed' }])
  await rm(odd, { recursive: true })
})
