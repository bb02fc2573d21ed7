import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import {
  CTRL_A,
  type Env,
  MUSTER,
  type RunningServer,
  type Terminal,
  makeSite,
  muster,
  run,
  serve,
  temporaryDirectory,
  terminal,
} from './testing.ts'

/** Completion in real shells: keys are typed at a terminal, and what the shell then has on its line is looked at. */
let dir: string
let site: string
let server: RunningServer

beforeAll(async () => {
  dir = await temporaryDirectory()
  site = await makeSite(join(dir, 'site'))
  await mkdir(join(dir, 'empty'))
  await mkdir(join(dir, 'home'))
  server = await serve(site, join(dir, 'data'))
  await muster('site apply --yes', { env: server.env })
  for (const [file, script] of Object.entries(RC)) await writeFile(join(dir, file), script)
  const zsh = await muster('completion zsh')
  await mkdir(join(dir, 'functions'))
  await writeFile(join(dir, 'functions/_muster'), zsh.stdout)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await rm(dir, { recursive: true })
})

/** `show` in front of a line prints it instead of running it. */
const RC = {
  bashrc: `PS1='> '
bind 'set enable-bracketed-paste off'
show() { printf 'LINE<%s>\\n' "$*"; }
source <(muster completion bash)
`,
  '.zshrc': `PS1='> '
show() { print -r -- "LINE<$*>" }
autoload -Uz compinit; compinit -u -D
zle -C all-matches complete-word _generic
bindkey '^Xa' all-matches
zstyle ':completion:all-matches:*' insert true
zstyle ':completion:all-matches::::' completer _all_matches _complete
source <(muster completion zsh)
`,
  'config.fish': `function fish_prompt; echo '> '; end
function show; echo "LINE<$argv>"; end
muster completion fish | source
function all_matches
  set -l found (complete -C (commandline -cp) | string replace -r '\\t.*' '')
  commandline -rt -- (string join ' ' $found)
end
bind \\cxa all_matches
`,
}

interface Shell {
  readonly name: string
  start(cwd: string, env: Env): Terminal
  /** Keys that put every candidate on the line. */
  readonly all: string
  readonly enter: string
}
const HOME = (): Env => ({
  HOME: join(dir, 'home'),
  XDG_CONFIG_HOME: join(dir, 'home'),
  XDG_DATA_HOME: join(dir, 'home'),
})
const shells: readonly Shell[] = [
  {
    name: 'bash',
    start: (cwd, env) => terminal(`bash --noprofile --rcfile ${dir}/bashrc -i`, { cwd, env: { ...HOME(), ...env } }),
    all: '\x1b*',
    enter: '\n',
  },
  {
    name: 'zsh',
    start: (cwd, env) => terminal('zsh -d -i', { cwd, env: { ...HOME(), ZDOTDIR: dir, ...env } }),
    all: '\x18a',
    enter: '\n',
  },
  {
    name: 'fish',
    start: (cwd, env) =>
      terminal(`fish --private --no-config -i -C 'source ${dir}/config.fish'`, {
        cwd,
        env: { ...HOME(), ...env, TERM: 'dumb' },
      }),
    all: '\x18a',
    enter: '\r',
  },
]

/** The line after these keys, its words one space apart. */
async function lineAfter({ enter }: Shell, screen: Terminal, keys: string): Promise<string> {
  const from = screen.stdout.length
  screen.type(`${keys}${CTRL_A}show ${enter}`)
  const shown = await screen.says(/LINE<muster[^>]*>/, from)
  return shown.slice('LINE<'.length, -1).trimEnd()
}

describe.each(shells)('$name', shell => {
  let screen: Terminal | undefined
  const at = (cwd: string, env: Env = {}): Terminal => (screen = shell.start(cwd, env))
  afterEach(() => screen?.[Symbol.asyncDispose]())
  const TAB = '\t'

  it('completes commands, options, values, nodes, groups and files', async () => {
    const here = at(site)
    const found: string[] = []
    for (const typed of ONE.map(([line]) => line)) found.push(await lineAfter(shell, here, typed + TAB))
    expect(found).toEqual(ONE.map(([, completed]) => completed))
  })

  it('offers everything there is', async () => {
    const here = at(site)
    const found: string[] = []
    for (const [line] of ALL) found.push(await lineAfter(shell, here, `${line}${shell.all}`))
    expect(found).toEqual(ALL.map(([line, words]) => `${line.slice(0, line.lastIndexOf(' '))} ${words}`))
  })

  it('asks the server where there is no site', async () => {
    const here = at(join(dir, 'empty'), server.env)
    expect(await lineAfter(shell, here, `muster node show log${TAB}`)).toBe('muster node show login1')
    expect(await lineAfter(shell, here, `muster node ls @gp${TAB}`)).toBe('muster node ls @gpu')
  })

  it('asks the server and the site that the line names', async () => {
    const here = at(join(dir, 'empty'))
    expect(await lineAfter(shell, here, `muster --site ${site} explain log${TAB}`)).toBe(
      `muster --site ${site} explain login1`,
    )
    expect(await lineAfter(shell, here, `muster node show --server ${server.socket} log${TAB}`)).toBe(
      `muster node show --server ${server.socket} login1`,
    )
  })

  it('is silent where there is neither', async () => {
    const here = at(join(dir, 'empty'))
    expect(await lineAfter(shell, here, `muster node show n0${TAB}`)).toBe('muster node show n0')
    expect(here.plain).not.toContain('error')
  })
})

/** What is typed, and what stands there after the tabulator. */
const ONE: readonly (readonly [typed: string, completed: string])[] = [
  ['muster site che', 'muster site check'],
  ['muster sta', 'muster status'],
  ['muster nodes', 'muster nodeset'],
  ['muster node ls --lo', 'muster node ls --long'],
  ['muster node ls --jso', 'muster node ls --json'],
  ['muster -o js', 'muster -o json'],
  ['muster -o json group s', 'muster -o json group s'],
  ['muster -o json group sh', 'muster -o json group show'],
  ['muster token create x --role op', 'muster token create x --role operator'],
  ['muster completion f', 'muster completion fish'],
  ['muster node show log', 'muster node show login1'],
  ['muster node ls @co', 'muster node ls @compute'],
  ['muster node ls n001,log', 'muster node ls n001,login1'],
  ['muster node ls n001,@co', 'muster node ls n001,@compute'],
  ['muster group show gp', 'muster group show gpu'],
  ['muster explain gpu0', 'muster explain gpu0'],
  ['muster secret set groups/com', 'muster secret set groups/compute.yaml'],
  ['muster backup site.ya', 'muster backup site.yaml'],
  ['muster serve --tls-key no', 'muster serve --tls-key nodes.yaml'],
  ['muster nosuch x', 'muster nosuch x'],
]

/** What is typed, and all that could stand there. */
const ALL: readonly (readonly [typed: string, words: string])[] = [
  [
    'muster ',
    'audit backup boot ca ci completion discover events explain files group image key lab man module node nodeset restore secret serve site status token',
  ],
  ['muster node ', 'add ls revoke rm set show swap timeline'],
  ['muster node show n0', 'n001 n002 n003 n004'],
  ['muster node ls @', '@compute @gpu'],
  ['muster nodeset fold n001 gpu', 'gpu01 gpu02'],
  ['muster group show ', 'compute gpu'],
  ['muster -o ', 'json table yaml'],
  ['muster site schema ', 'cluster group image module nodes site'],
]

describe('bash', () => {
  it('completes directories with their slash, and no files where a directory is wanted', async () => {
    const [shell] = shells
    if (shell === undefined) throw new Error('no bash')
    await using screen = shell.start(site, {})
    expect(await lineAfter(shell, screen, 'muster site check ima\t')).toBe('muster site check images/')
    expect(await lineAfter(shell, screen, 'muster site check nod\t')).toBe('muster site check nod')
  })

  it('completes a path with a space in it', async () => {
    const [shell] = shells
    if (shell === undefined) throw new Error('no bash')
    await mkdir(join(dir, 'with space'))
    await writeFile(join(dir, 'with space/backup.db'), '')
    await using screen = shell.start(dir, {})
    expect(await lineAfter(shell, screen, 'muster restore with\tback\t')).toBe('muster restore with space/backup.db')
  })

  it('has a script that shellcheck finds nothing wrong with', async () => {
    const { stdout } = await muster('completion bash')
    expect(await run('shellcheck', ['--shell=bash', '-'], { input: stdout })).toEqual({
      status: 0,
      stdout: '',
      stderr: '',
    })
  })

  it('leaves no variables behind', async () => {
    const script =
      'before=$(compgen -v); source <(muster completion bash); COMP_LINE="muster si" COMP_POINT=9; COMP_WORDS=(muster si) COMP_CWORD=1; _muster; diff <(echo "$before") <(compgen -v)'
    const { stdout } = await run('bash', ['--norc', '-c', script], { cwd: site })
    const names = [...stdout.matchAll(/^> (\w+)/gm)].map(([, name]) => name)
    expect(names.filter(name => !/^(COMP|PIPESTATUS|before|BASH|MAPFILE|_)/.test(name ?? ''))).toEqual([])
  })
})

describe('zsh', () => {
  it('completes from the first time when the script is a file in fpath', async () => {
    const zdotdir = join(dir, 'fpath')
    await mkdir(zdotdir)
    await writeFile(
      join(zdotdir, '.zshrc'),
      `PS1='> '\nshow() { print -r -- "LINE<$*>" }\nfpath=(${dir}/functions $fpath)\nautoload -Uz compinit; compinit -u -D\n`,
    )
    const shell = shells[1]
    if (shell === undefined) throw new Error('no zsh')
    await using screen = shell.start(site, { ZDOTDIR: zdotdir })
    expect(await lineAfter(shell, screen, 'muster site che\t')).toBe('muster site check')
    expect(await lineAfter(shell, screen, 'muster node show log\t')).toBe('muster node show login1')
  })

  it('puts a space behind a finished word', async () => {
    const shell = shells[1]
    if (shell === undefined) throw new Error('no zsh')
    await using screen = shell.start(site, {})
    expect(await lineAfter(shell, screen, 'muster site che\t--js\t')).toBe('muster site check --json')
  })
})

async function fishCompletes(line: string): Promise<string[]> {
  const script = `muster completion fish | source; complete -C '${line}'`
  const { stdout } = await run('fish', ['--private', '--no-config', '-c', script], { cwd: site, env: HOME() })
  return stdout.split('\n').filter(Boolean)
}

describe('fish', () => {
  test.each<[line: string, candidates: string[]]>([
    ['muster node ', ['add', 'ls', 'revoke', 'rm', 'set', 'show', 'swap', 'timeline']],
    ['muster site che', ['check']],
    ['muster node show n0', ['n001', 'n002', 'n003', 'n004']],
    ['muster node ls @', ['@compute', '@gpu']],
    ['muster node ls n001,@co', ['n001,@compute']],
    ['muster -o ', ['json', 'table', 'yaml']],
    ['muster node ls --lo', ['--long']],
    ['muster site check ', ['groups/', 'images/']],
    ['muster secret set no', ['nodes.yaml']],
    ['muster token ls ', []],
  ])('%s', async (line, candidates) => {
    expect((await fishCompletes(line)).map(found => found.split('\t')[0])).toEqual(candidates)
  })

  it('says what commands are about', async () => {
    expect(await fishCompletes('muster node ls --lo')).toEqual(['--long\tone line per node'])
    expect(await fishCompletes('muster sta')).toEqual(['status\tShow the server: version, generation in force, counts'])
  })
})

describe('muster complete', () => {
  let turn = 0
  beforeEach(() => void (turn += 1))

  it('answers quickly enough to type on', async () => {
    const began = performance.now()
    await run(MUSTER, ['complete', '--', 'node', 'l'], { cwd: site })
    expect(performance.now() - began).toBeLessThan(5000)
  })

  test.each([
    ['a broken site', { 'site.yaml': 'site: [' }],
    ['a site with mistakes', { 'groups/gpu.yaml': 'nosuch: 1\n' }],
  ])('never complains: %s', async (_, files) => {
    const broken = await makeSite(join(dir, `broken${turn}`), files)
    expect(await run(MUSTER, ['complete', '--', 'node', 'show', 'log'], { cwd: broken })).toMatchObject({
      status: 0,
      stderr: '',
    })
  })
})
