import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import {
  CTRL_C,
  CTRL_D,
  type Env,
  type Lab,
  type Ran,
  type Terminal,
  git,
  normalise,
  plainText,
  startLab,
  terminal,
} from './testing.ts'

/** At a terminal, which is a real one: questions, keys and colours. */
let lab: Lab
beforeAll(async () => {
  lab = await startLab()
})
afterAll(() => lab[Symbol.asyncDispose]())

const at = (words: string, env: Env = {}): Terminal =>
  terminal(`muster ${words}`, { cwd: lab.dir, env: { ...lab.server.env, ...env } })

/** Shows its question, gets the keys, ends. */
async function answered(words: string, keys: string): Promise<Ran & { readonly plain: string }> {
  await using screen = at(words)
  await screen.says(/\[y\/N\] /)
  screen.type(keys)
  const status = await screen.ended
  return { status, stdout: screen.stdout, stderr: '', plain: normalise(screen.plain) }
}

const applied = async (): Promise<number> =>
  (JSON.parse((await lab.muster('status --json')).stdout) as { generation: { number: number } | null }).generation
    ?.number ?? 0

describe('site apply', () => {
  let generation = 0
  beforeEach(async () => {
    generation += 1
    await lab.muster(`node set n001 vars.turn=${generation}`)
  })

  it('goes on with y', async () => {
    const { status, plain } = await answered('site apply', 'y\r')
    expect(status).toBe(0)
    expect(plain).toBe(`+ gpu[01-02],login1,n[001-004]
apply to 7 nodes? [y/N] y
generation 1 applied: commit c0ffee0000, 7 nodes changed
`)
    expect(await applied()).toBe(1)
  })

  it.each(['n\r', '\r', 'nonsense\r'])('changes nothing with %j', async keys => {
    const before = await applied()
    const { status, plain } = await answered('site apply', keys)
    expect(status).toBe(1)
    expect(plain).toMatch(/\nerror: not confirmed\nhint: {2}nothing was changed\n$/)
    expect(await applied()).toBe(before)
  })

  it('changes nothing with Ctrl-C, exit status 130, and says no more', async () => {
    const before = await applied()
    const { status, plain } = await answered('site apply', CTRL_C)
    expect(plain).not.toMatch(/error|hint|Abort/)
    expect(status).toBe(130)
    expect(await applied()).toBe(before)
  })

  it('changes nothing when the terminal goes (Ctrl-D)', async () => {
    const before = await applied()
    const { status, plain } = await answered('site apply', CTRL_D)
    expect(plain).toMatch(/\nerror: not confirmed\nhint: {2}nothing was changed\n$/)
    expect(status).toBe(1)
    expect(await applied()).toBe(before)
  })

  it('asks nothing with --yes, nor when there is nothing to do', async () => {
    await using first = at('site apply --yes')
    expect(await first.ended).toBe(0)
    expect(first.stdout).not.toContain('[y/N]')
    await using second = at('site apply')
    expect(await second.ended).toBe(0)
    expect(normalise(second.plain)).toMatch(
      /^no difference\nnothing to do: generation \d+ \(c0ffee0000\) is in force\n$/,
    )
  })

  it('asks although its result goes into a file', async () => {
    const file = join(lab.dir, 'out.json')
    await using screen = terminal(`muster site apply --json > ${file}`, { cwd: lab.dir, env: lab.server.env })
    await screen.says('[y/N] ')
    screen.type('y\r')
    expect(await screen.ended).toBe(0)
  })
})

describe('the other questions', () => {
  test.each([
    ['site revert', /^go back to generation \d+ \(c0ffee0000: .*\)\? \[y\/N\] /],
    ['node rm n004', /^remove n004 from the site\? \[y\/N\] /],
    ['group rm gpu', /^remove group gpu from the site\? \[y\/N\] /],
    ['restore state.db --data elsewhere', /^replace the state in elsewhere by state\.db\? \[y\/N\] /],
  ])('muster %s', async (words, question) => {
    const head = await git(lab.site, 'rev-parse', 'HEAD')
    const { status, plain } = await answered(words, 'n\r')
    expect(status).toBe(1)
    expect(plain).toMatch(question)
    expect(await git(lab.site, 'rev-parse', 'HEAD')).toBe(head)
  })

  it('muster node rm with y', async () => {
    const { status, plain } = await answered('node rm n004', 'y\r')
    expect(status).toBe(0)
    expect(plain).toContain('nodes.yaml: committed as c0ffee0000 "Remove n004"\n')
  })
})

describe('Ctrl-C', () => {
  it('ends events --follow the first time', async () => {
    await using screen = at('events --follow --after 0')
    await screen.says('site.applied')
    screen.type(CTRL_C)
    const status = await Promise.race([screen.ended, new Promise(done => setTimeout(done, 5000, 'still running'))])
    expect(status).toBe(130)
  })

  it('leaves the file alone at the question of a secret', async () => {
    await lab.muster(`secret keygen --site site --key ${join(lab.dir, 'age.key')}`)
    const head = await git(lab.site, 'rev-parse', 'HEAD')
    await using screen = at('secret set site.yaml defaults.vars.password --site site')
    await screen.says('value (not shown): ')
    screen.type(`hunt${CTRL_C}`)
    const status = await screen.ended
    expect(await git(lab.site, 'rev-parse', 'HEAD')).toBe(head)
    expect(screen.plain).not.toMatch(/error|hint|Abort/)
    expect(status).toBe(130)
  })
})

describe('a secret', () => {
  it('is asked for without showing what is typed', async () => {
    await using screen = at('secret set site.yaml defaults.vars.password --site site')
    await screen.says('value (not shown): ')
    screen.type('hunter2\r')
    expect(await screen.ended).toBe(0)
    expect(screen.plain).not.toContain('hunter2')
    expect(screen.plain).not.toContain('*')
    expect(normalise(screen.plain)).toBe(
      'value (not shown): \nsite.yaml: defaults.vars.password encrypted, committed as c0ffee0000\n',
    )
  })
})

const still = (text: string): string => plainText(text).replaceAll(/\d+[smhd] ago +/g, 'AGO ')

describe('colours', () => {
  const CASES: readonly [words: string, coloured: string, status?: number][] = [
    ['node show gpu01', '\x1b[1mgpu01\x1b[22m  desired state'],
    ['explain gpu01 boot.image', '\x1b[1mboot.image\x1b[22m = gpu'],
    ['nodeset diff n1 n2', '\x1b[31m- n1\x1b[39m\r\n\x1b[32m+ n2\x1b[39m\r\n', 1],
  ]

  test.each(CASES)('muster %s has some', async (words, coloured, status = 0) => {
    await using screen = at(words)
    expect(await screen.ended).toBe(status)
    expect(screen.stdout).toContain(coloured)
  })

  test.each(CASES)(
    'muster %s has none with NO_COLOR, on a dumb terminal, or in a pipe',
    async (words, _, status = 0) => {
      const piped = await lab.muster(words)
      expect(piped.stdout).not.toContain('\x1b')
      for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
        await using screen = at(words, env)
        expect(await screen.ended).toBe(status)
        expect(screen.stdout.replaceAll('\r', '')).toBe(piped.stdout)
      }
    },
  )

  test.each(CASES)('muster %s --json has none at all', async (words, _, status = 0) => {
    await using screen = at(`${words} --json`)
    expect(await screen.ended).toBe(status)
    expect(() => JSON.parse(screen.stdout)).not.toThrow()
  })

  it('are the only difference to a pipe', async () => {
    for (const words of ['node show gpu01', 'explain gpu01 boot', 'node ls', 'site log', 'group ls']) {
      await using screen = at(words)
      await screen.ended
      const piped = await lab.muster(words)
      expect(still(screen.stdout)).toBe(still(piped.stdout))
    }
  })

  it('are not in what errors say', async () => {
    await using screen = at('node show n999')
    expect(await screen.ended).toBe(1)
    expect(screen.stdout).toBe('error: no node is named n999\r\nhint:  list the nodes with: muster node ls\r\n')
  })
})

test('an editor has the terminal', async () => {
  const editor = join(lab.dir, 'editor')
  await writeFile(editor, '#!/bin/sh\ntest -t 0 && test -t 1 && printf "edited" > "$1"\n', { mode: 0o755 })
  await using screen = at(
    `secret edit site.yaml defaults.vars.password --site site --key ${join(lab.dir, 'age.key')}`,
    {
      EDITOR: editor,
    },
  )
  expect(await screen.ended).toBe(0)
  expect(normalise(screen.plain)).toBe('site.yaml: defaults.vars.password encrypted, committed as c0ffee0000\n')
})
