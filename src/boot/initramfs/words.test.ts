import { describe, expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { Bench, SHELLS } from './testing.ts'
import { SCRIPTS } from './scripts.ts'

test('shellcheck has nothing to say about what runs on machines', async () => {
  const { stdout } = await exec('sh', ['-c', 'shellcheck init attempt udhcpc *.sh'], {
    cwd: SCRIPTS,
    allow: [1],
  })
  expect(stdout.toString()).toBe('')
})

describe.each(SHELLS)('small things, in %s', shell => {
  const run = async (commands: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
    await using bench = await Bench.create(shell)
    return (
      await bench.run('lib patience plan report root', `PROC=$WORK\necho '7.08 1.00' >"$WORK/uptime"\n${commands}`, env)
    ).output
  }

  test.each([
    ['plain', '"plain"'],
    ['', '""'],
    ['say "no" \\ to\ttabs', '"say \\"no\\" \\\\ to?tabs"'],
    ['two\nlines', '"two?lines"'],
    ['Größe', '"Gr????e"'],
    ["%s $HOME `id` '", '"%s $HOME `id` \'"'],
  ])('%j as a JSON string', async (text, quoted) => {
    const output = await run('json_string "$TEXT"', { TEXT: text })
    expect(output).toBe(quoted)
    expect(JSON.parse(output)).toHaveLength(Buffer.byteLength(text))
  })

  test('a JSON string is never longer than a thousand characters', async () => {
    expect(JSON.parse(await run('json_string "$TEXT"', { TEXT: '"'.repeat(3000) }))).toBe('"'.repeat(1000))
  })

  test('the time since the start, also where it has leading zeros', async () => {
    expect(await run('now; echo $clock; seconds $clock; echo $in_seconds; seconds 1234; echo $in_seconds')).toBe(
      '708\n7.08\n12.34\n',
    )
  })

  test('sizes', async () => {
    expect(await run('mebibytes 0; echo; mebibytes 1572864; echo; mebibytes 999999999999')).toBe(
      '0.0 MiB\n1.5 MiB\n953674.3 MiB',
    )
  })

  test('what is said is on the console and in the log', async () => {
    expect(await run('say "hello  there" 2>&1; cat "$RUN/log"')).toBe('[7.08] hello  there\n[7.08] hello  there\n')
  })

  test.each([
    [1, 60, 0.5, 1],
    [2, 60, 1, 2],
    [5, 60, 8, 16],
    [7, 60, 30, 60],
    [1000, 60, 30, 60],
    [4, 5, 2.5, 5],
  ])('after %i failures, at most %i s: between %d and %d', async (failures, limit, least, most) => {
    const output = await run(`for n in 1 2 3 4 5 6 7 8; do back_off ${failures} ${limit}; done`)
    const waits = output.trim().split('\n').map(Number)
    for (const wait of waits) {
      expect(wait).toBeGreaterThanOrEqual(least)
      expect(wait).toBeLessThanOrEqual(most)
    }
    expect(new Set(waits).size).toBeGreaterThan(1)
  })

  test.each([
    ['', ' http://a http://b http://c'],
    ['http://b', 'http://b  http://a http://c'],
    ['http://gone', ' http://a http://b http://c'],
  ])('servers in turn when %j answered last', async (last, servers) => {
    const commands =
      'echo "$LAST" >"$WORK/server"; plan_servers=http://a,http://b,http://c; servers_in_turn; echo "$servers"'
    expect(await run(commands, { LAST: last })).toBe(`${servers}\n`)
  })

  test.each([
    ['a program', 'mkdir sbin; : >sbin/init; chmod 755 sbin/init', '/sbin/init'],
    [
      'an absolute link',
      'mkdir -p sbin usr/lib; : >usr/lib/real; chmod 755 usr/lib/real; ln -s /usr/lib/real sbin/init',
      '/sbin/init',
    ],
    [
      'links of directories',
      'mkdir -p usr/bin; ln -s usr/bin sbin; ln -s ../bin/x usr/bin/init; : >usr/bin/x; chmod 755 usr/bin/x',
      '/sbin/init',
    ],
    [
      'systemd alone',
      'mkdir -p usr/lib/systemd; : >usr/lib/systemd/systemd; chmod 755 usr/lib/systemd/systemd',
      '/usr/lib/systemd/systemd',
    ],
    ['a link that leads out of the image', 'mkdir sbin; ln -s /bin/sh sbin/init', 'none'],
    ['a link to itself', 'mkdir sbin; ln -s init sbin/init', 'none'],
    ['a file that is no program', 'mkdir sbin; : >sbin/init', 'none'],
    ['nothing', ':', 'none'],
  ])('the init of an image: %s', async (_, make, expected) => {
    expect(await run(`mkdir "$WORK/root"; cd "$WORK/root"; ${make}; find_init "$WORK/root" || echo none`)).toBe(
      `${expected}\n`,
    )
  })
})
