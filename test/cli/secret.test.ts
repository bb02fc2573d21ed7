import { appendFile, chmod, mkdir, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { exec } from '../../src/lib/exec.ts'
import {
  BASE_ENV,
  type Env,
  MUSTER,
  type Ran,
  SITE,
  git,
  makeSite,
  muster,
  normalise,
  run,
  start,
  temporaryDirectory,
} from './testing.ts'

/** Secrets: into the file they go encrypted, out of it only those with a key get them, and nowhere else do they appear. */
const VALUE = 'correct horse battery staple'
let dir: string
let site: string
let key: string
let log: string
let env: Env

beforeAll(async () => {
  dir = await temporaryDirectory()
  site = await makeSite(join(dir, 'site'))
  key = join(dir, 'age.key')
  log = join(dir, 'programs.log')
  // Everything that is started with the name of git leaves its command line and its environment behind.
  const real = (await run('sh', ['-c', 'command -v git'])).stdout.trim()
  await mkdir(join(dir, 'bin'))
  await writeFile(join(dir, 'bin/git'), `#!/bin/sh\n{ printf '%s ' "$@"; env; } >> '${log}'\nexec ${real} "$@"\n`)
  await chmod(join(dir, 'bin/git'), 0o755)
  env = { PATH: `${join(dir, 'bin')}:${BASE_ENV['PATH']}` }
})
afterAll(() => rm(dir, { recursive: true }))

const secret = (words: string, input?: string, more: Env = {}): Promise<Ran> =>
  muster(`secret ${words}`, { cwd: site, env: { ...env, ...more }, ...(input !== undefined && { input }) })

/** What stands encrypted at a path of a file. */
async function armored(file: string, path: string): Promise<string> {
  const text = await readFile(join(site, file), 'utf8')
  const value: unknown = parse(text, { customTags: [{ tag: '!age', resolve: (encrypted: string) => encrypted }] })
  return String(path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], value))
}

/** What the real age makes of it. */
async function opened(file: string, path: string, identity = key): Promise<string> {
  const { stdout } = await exec('age', ['--decrypt', '--identity', identity], { input: await armored(file, path) })
  return stdout.toString('utf8')
}

describe('keygen', () => {
  let said = ''

  it('makes a key that is yours alone, and names its recipient', async () => {
    const ran = await secret(`keygen --key ${key}`)
    said = ran.stdout
    const text = await readFile(key, 'utf8')
    const [, recipient = ''] = /^# public key: (age1[0-9a-z]{58})\nAGE-SECRET-KEY-1[0-9A-Z]{58}\n$/.exec(text) ?? []
    expect(recipient).not.toBe('')
    expect(ran.status).toBe(0)
    expect(ran.stdout.split('\n').slice(0, 2)).toEqual([
      `key written to ${key}, readable by you alone: keep a copy in a safe place`,
      `recipient ${recipient} added to site.yaml, committed`,
    ])
    expect((await stat(key)).mode & 0o777).toBe(0o600)
    expect((await exec('age-keygen', ['-y', key])).stdout.toString('utf8')).toBe(`${recipient}\n`)
    expect(await readFile(join(site, 'site.yaml'), 'utf8')).toBe(
      `${SITE['site.yaml']}secrets:\n  recipients: [${recipient}]\n`,
    )
    expect(await git(site, 'log', '-1', '--format=%s')).toBe('Add a recipient of secrets\n')
    expect(ran.stdout + ran.stderr + (await git(site, 'log', '-p'))).not.toContain('AGE-SECRET-KEY')
  })

  it('says the next step', () => {
    expect(said).toMatch(/\nnext: muster secret set .*\n$/)
  })

  it('never overwrites a file', async () => {
    const before = await readFile(key, 'utf8')
    expect(await secret(`keygen --key ${key}`)).toEqual({
      status: 2,
      stdout: '',
      stderr: `error: ${key} exists already or cannot be written\nhint:  choose another file; keys are never overwritten\n`,
    })
    expect(await readFile(key, 'utf8')).toBe(before)
  })

  it.each(['age.key', './groups/age.key', '../site/age.key', '../link/age.key'])('refuses %s', async file => {
    await symlink(site, join(dir, 'link')).catch(() => {})
    expect(await secret(`keygen --key ${file}`)).toEqual({
      status: 2,
      stdout: '',
      stderr: `error: ${file} is inside the repository: keep keys out of git\nhint:  choose another place, such as /etc/muster\n`,
    })
    await expect(readFile(join(site, file))).rejects.toThrow('ENOENT')
  })

  it('refuses a place in the repository that the site is only a folder of', async () => {
    const repository = join(dir, 'infra')
    await makeSite(join(repository, 'cluster'))
    await rm(join(repository, 'cluster/.git'), { recursive: true })
    await git(repository, 'init', '--quiet')
    await git(repository, 'add', '.')
    await git(repository, 'commit', '--quiet', '-m', 'first')
    const ran = await muster('secret keygen --key ../age.key', { cwd: join(repository, 'cluster') })
    expect(ran).toMatchObject({ status: 2, stdout: '' })
    expect(ran.stderr).toContain('is inside the repository')
    expect(await readdir(repository)).not.toContain('age.key')
  })

  it('needs a place, in a directory there is', async () => {
    expect(await secret('keygen')).toMatchObject({ status: 2, stdout: '' })
    expect(await secret(`keygen --key ${dir}/no/such/age.key`)).toEqual({
      status: 2,
      stdout: '',
      stderr: `error: there is no directory ${dir}/no/such\nhint:  see --help\n`,
    })
  })

  it('leaves no key behind that nobody knows of', async () => {
    await appendFile(join(site, 'site.yaml'), '# mine\n')
    const ran = await secret(`keygen --key ${dir}/orphan.key`)
    await git(site, 'checkout', '--quiet', 'site.yaml')
    expect(ran).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: site.yaml has changes that are not committed\nhint:  commit or drop them first\n',
    })
    expect(await readdir(dir)).not.toContain('orphan.key')
  })
})

describe('set', () => {
  beforeEach(() => rm(log, { force: true }))

  it('encrypts what is piped in, and commits', async () => {
    const ran = await secret('set site.yaml defaults.vars.password', VALUE)
    expect({ ...ran, stdout: normalise(ran.stdout) }).toEqual({
      status: 0,
      stdout: 'site.yaml: defaults.vars.password encrypted, committed as c0ffee0000\n',
      stderr: '',
    })
    expect(await opened('site.yaml', 'defaults.vars.password')).toBe(VALUE)
    expect(await git(site, 'log', '-1', '--format=%s')).toBe('Set secret defaults.vars.password in site.yaml\n')
    expect(await git(site, 'status', '--porcelain')).toBe('')
  })

  test.each([
    ['a line', 'one line\n', 'one line'],
    ['lines', 'first\nsecond\n\nfourth\n', 'first\nsecond\n\nfourth'],
    ['lines without an end', 'first\nsecond', 'first\nsecond'],
    ['spaces', '  around  ', '  around  '],
    ['what YAML would take for something else', 'yes: [no, {', 'yes: [no, {'],
    ['other letters', 'pässwörd 🔑', 'pässwörd 🔑'],
  ])('keeps %s', async (_, input, value) => {
    expect((await secret('set groups/compute.yaml bmc.password -m Password', input)).status).toBe(0)
    expect(await opened('groups/compute.yaml', 'bmc.password')).toBe(value)
  })

  it('keeps the comments of the file', async () => {
    expect(await readFile(join(site, 'groups/compute.yaml'), 'utf8')).toMatch(
      /^# Compute nodes\.\nboot:\n {2}image: "compute@\{\{ vars\.channel \}\}" # which channel\nbmc:\n {2}password: !age \|\n/,
    )
  })

  it('puts one into a single node', async () => {
    expect((await secret('set nodes.yaml login1.bmc.password', VALUE)).status).toBe(0)
    expect(await opened('nodes.yaml', 'login1.bmc.password')).toBe(VALUE)
  })

  it('refuses an empty value: it is what a broken pipe gives', async () => {
    const head = await git(site, 'rev-parse', 'HEAD')
    const ran = await secret('set site.yaml defaults.vars.empty', '')
    await git(site, 'reset', '--quiet', '--hard', head.trim())
    expect({ status: ran.status === 0, stdout: ran.stdout }).toEqual({ status: false, stdout: '' })
  })

  it.each(['elsewhere.yaml', '../outside.yaml', '/tmp/outside.yaml', 'files/motd.j2', 'compute.yaml'])(
    'refuses %s, which is no file of the site',
    async file => {
      const head = await git(site, 'rev-parse', 'HEAD')
      const ran = await secret(`set ${file} vars.password`, VALUE)
      expect({ status: ran.status === 0, stdout: ran.stdout }).toEqual({ status: false, stdout: '' })
      expect(ran.stderr).toMatch(/^error: (?!git ).*\nhint: {2}.*\n$/)
      expect(await git(site, 'rev-parse', 'HEAD')).toBe(head)
      expect(await git(site, 'status', '--porcelain')).toBe('')
    },
  )

  it('needs a recipient', async () => {
    const other = await makeSite(join(dir, 'other'))
    expect(await muster('secret set site.yaml defaults.vars.x', { cwd: other, input: VALUE })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the site names no recipients for its secrets (site.yaml: secrets.recipients)
hint:  make a key with: muster secret keygen --key FILE
`,
    })
  })

  it('takes no value as an argument', async () => {
    const ran = await secret('set site.yaml defaults.vars.password hunter2')
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status: 2, stdout: '' })
  })
})

async function commandLines(): Promise<string[]> {
  const processes = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  return Promise.all(processes.map(id => readFile(`/proc/${id}/cmdline`, 'latin1').catch(() => '')))
}

async function filesWith(text: string): Promise<string[]> {
  const { stdout } = await exec('grep', ['--recursive', '--files-with-matches', '--fixed-strings', text, dir], {
    allow: [1],
  })
  return stdout.toString('utf8').split('\n').filter(Boolean)
}

describe('the value appears nowhere', () => {
  const HIDDEN = 'Tr0ub4dor&3-never-to-be-seen'

  it('not in what is printed, in files, in git, in other programs or their environment', async () => {
    await rm(log, { force: true })
    const program = start(MUSTER, ['secret', 'set', 'site.yaml', 'defaults.vars.hidden', '--debug'], {
      cwd: site,
      env,
      input: '',
    })
    program.child.stdin?.end(HIDDEN)
    const lines = new Set<string>()
    const running = (): boolean => program.child.exitCode === null && program.child.signalCode === null
    while (running()) for (const line of await commandLines()) lines.add(line)
    expect(await program.ended).toBe(0)
    expect([...lines].some(line => line.includes('defaults.vars.hidden'))).toBe(true)
    expect([...lines].filter(line => line.includes(HIDDEN))).toEqual([])
    expect(program.stdout + program.stderr).not.toContain(HIDDEN)

    const started = await readFile(log, 'utf8')
    expect(started).toContain('commit')
    expect(started).not.toContain(HIDDEN)
    expect(await filesWith(HIDDEN)).toEqual([])
    const objects = await exec('git', ['-C', site, 'cat-file', '--batch-all-objects', '--batch'])
    expect(objects.stdout.includes(HIDDEN)).toBe(false)
    expect(await opened('site.yaml', 'defaults.vars.hidden')).toBe(HIDDEN)
  })

  it.each([
    'secret ls',
    'secret ls --json',
    'site show n001',
    'site show n001 --json',
    'explain n001',
    'explain n001 vars.hidden --json',
    'site check --json',
    'site diff --against HEAD~1',
    'site diff --against HEAD~1 --json',
  ])('not in muster %s, with or without the key', async words => {
    for (const more of [{}, { MUSTER_AGE_KEY_FILE: key }]) {
      const { status, stdout, stderr } = await muster(words, { cwd: site, env: more })
      expect(status).toBe(0)
      expect(stdout + stderr).not.toContain(HIDDEN)
      expect(stdout + stderr).not.toContain('BEGIN AGE')
    }
  })
})

const editor = async (script: string): Promise<string> => {
  const file = join(dir, 'editor')
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return file
}

const edit = (EDITOR: string, more: Env = {}): Promise<Ran> =>
  secret(`edit site.yaml defaults.vars.edited --key ${key}`, undefined, { EDITOR, ...more })

const value = (): Promise<string> => opened('site.yaml', 'defaults.vars.edited')

describe('edit', () => {
  beforeAll(() => secret('set site.yaml defaults.vars.edited', 'old value'))

  it('shows the editor what there is, and takes what it leaves', async () => {
    const seen = join(dir, 'seen')
    const ran = await edit(
      await editor(`cp "$1" ${seen}; stat -c %a "$1" "$(dirname "$1")" > ${seen}.mode; printf %s 'new value' > "$1"`),
    )
    expect({ ...ran, stdout: normalise(ran.stdout) }).toEqual({
      status: 0,
      stdout: 'site.yaml: defaults.vars.edited encrypted, committed as c0ffee0000\n',
      stderr: '',
    })
    expect(await readFile(seen, 'utf8')).toBe('old value')
    expect(await readFile(`${seen}.mode`, 'utf8')).toBe('600\n700\n')
    expect(await value()).toBe('new value')
  })

  it('leaves no file behind', async () => {
    const where = join(dir, 'where')
    await edit(await editor(`printf %s "$1" > ${where}; printf %s fourth > "$1"`))
    const file = await readFile(where, 'utf8')
    await expect(stat(file)).rejects.toThrow('ENOENT')
    await expect(stat(join(file, '..'))).rejects.toThrow('ENOENT')
    // The same when the editor fails.
    await edit(await editor(`printf %s "$1" > ${where}; exit 3`))
    await expect(stat(await readFile(where, 'utf8'))).rejects.toThrow('ENOENT')
  })

  it('commits nothing when nothing was changed', async () => {
    const head = await git(site, 'rev-parse', 'HEAD')
    expect(await edit(await editor(':'))).toEqual({ status: 0, stdout: '', stderr: 'unchanged\n' })
    expect(await git(site, 'rev-parse', 'HEAD')).toBe(head)
  })

  // vi and nano end every file with a newline, which nobody typed.
  it('does not take the newline for a part of the value that editors put at the end', async () => {
    await edit(await editor(String.raw`printf 'from vi\n' > "$1"`))
    expect(await value()).toBe('from vi')
    const head = await git(site, 'rev-parse', 'HEAD')
    await edit(await editor(String.raw`printf 'from vi\n' > "$1"`))
    expect(await git(site, 'rev-parse', 'HEAD')).toBe(head)
  })

  it('changes nothing when the editor fails', async () => {
    const head = await git(site, 'rev-parse', 'HEAD')
    const ran = await edit(await editor('printf %s lost > "$1"; exit 3'))
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status: 1, stdout: '' })
    expect(ran.stderr).toMatch(/^error: .*failed with exit status 3\nhint: {2}.*\n$/)
    expect(await git(site, 'rev-parse', 'HEAD')).toBe(head)
  })

  it('gives arguments to the editor, and prefers VISUAL unless it is empty', async () => {
    const file = await editor(String.raw`printf '%s' "$1" > "$2"`)
    await edit(`${file} one`)
    expect(await value()).toBe('one')
    await edit(`${file} two`, { VISUAL: `${file} three` })
    expect(await value()).toBe('three')
    await edit(`${file} four`, { VISUAL: '' })
    expect(await value()).toBe('four')
  })

  it('needs a key, and the right one', async () => {
    const words = 'edit site.yaml defaults.vars.edited'
    expect(await secret(words)).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: no key was given\nhint:  give it with --key FILE or MUSTER_AGE_KEY_FILE\n',
    })
    const wrong = join(dir, 'wrong.key')
    await exec('age-keygen', ['-o', wrong])
    expect(await secret(`${words} --key ${wrong}`)).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: cannot be decrypted with this key\nhint:  is this the right key? give it with --key FILE\n',
    })
    expect((await secret(words, undefined, { MUSTER_AGE_KEY_FILE: key, EDITOR: 'true' })).status).toBe(0)
  })

  it('edits only what there is', async () => {
    expect(await secret(`edit site.yaml defaults.vars.nosuch --key ${key}`)).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: there is no secret defaults.vars.nosuch in site.yaml\nhint:  list them with: muster secret ls\n',
    })
  })
})

describe('ls', () => {
  it('says where they are', async () => {
    const recipient = (await exec('age-keygen', ['-y', key])).stdout.toString('utf8').trim()
    const { status, stdout, stderr } = await secret('ls')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const [header, ...rows] = stdout.trimEnd().split('\n')
    expect(header).toMatch(/^WHERE +PATH$/)
    expect(rows.at(-1)).toBe(`for 1 recipient: ${recipient}`)
    const places = rows.slice(0, -1).map(row => row.split(/ +/))
    expect(places.map(([, path]) => path)).toEqual([
      'bmc.password',
      'login1.bmc.password',
      'defaults.vars.password',
      'defaults.vars.hidden',
      'defaults.vars.edited',
    ])
    for (const [place = '', path = ''] of places) {
      const [file = '', line = ''] = place.split(':')
      const text = (await readFile(join(site, file), 'utf8')).split('\n')[Number(line) - 1]
      expect(text).toContain(`${path.split('.').at(-1)}: !age`)
    }
  })
})

const second = (): string => join(dir, 'second.key')

describe('rotate', () => {
  it('opens every secret to a recipient that was added, and leaves the values as they are', async () => {
    expect((await secret(`keygen --key ${second()}`)).status).toBe(0)
    await expect(opened('site.yaml', 'defaults.vars.password', second())).rejects.toThrow('failed with exit status 1')
    const ran = await secret(`rotate --key ${key}`)
    expect({ ...ran, stdout: normalise(ran.stdout) }).toEqual({
      status: 0,
      stdout: '5 secrets encrypted anew, committed as c0ffee0000\n',
      stderr: '',
    })
    for (const identity of [key, second()]) {
      expect(await opened('site.yaml', 'defaults.vars.password', identity)).toBe(VALUE)
      expect(await opened('nodes.yaml', 'login1.bmc.password', identity)).toBe(VALUE)
      expect(await opened('groups/compute.yaml', 'bmc.password', identity)).toBe('pässwörd 🔑')
    }
    expect(await muster('site check', { cwd: site, env: { MUSTER_AGE_KEY_FILE: second() } })).toEqual({
      status: 0,
      stdout: '',
      stderr: '',
    })
  })

  it('closes them to a recipient that was removed', async () => {
    const file = join(site, 'site.yaml')
    const [first = ''] = /age1[0-9a-z]{58}/.exec(await readFile(file, 'utf8')) ?? []
    await writeFile(file, (await readFile(file, 'utf8')).replace(new RegExp(`${first},? ?`), ''))
    await git(site, 'commit', '--quiet', '--all', '-m', 'Somebody left')
    expect((await secret(`rotate --key ${second()}`)).status).toBe(0)
    await expect(opened('site.yaml', 'defaults.vars.password', key)).rejects.toThrow('failed with exit status 1')
    expect(await opened('site.yaml', 'defaults.vars.password', second())).toBe(VALUE)
  })

  it('needs a key that opens them', async () => {
    const head = await git(site, 'rev-parse', 'HEAD')
    const ran = await secret(`rotate --key ${key}`)
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status: 1, stdout: '' })
    expect(ran.stderr).toMatch(
      /^error: \S+\.yaml:\d+: \S+: cannot be decrypted with this key\nhint: {2}is this the right key\? give it with --key FILE\n$/,
    )
    expect(await secret('rotate')).toMatchObject({ status: 1, stdout: '' })
    expect(await git(site, 'rev-parse', 'HEAD')).toBe(head)
  })
})

describe('site check', () => {
  it('says which secret the key does not open', async () => {
    const { status, stdout, stderr } = await muster(`site check --key ${key}`, { cwd: site })
    expect(status).toBe(1)
    expect(stdout).toMatch(/^groups\/compute\.yaml:\d+:\d+: bmc\.password: cannot be decrypted with this key$/m)
    expect(stderr).toBe('5 errors\n')
  })

  it('says so when the key file is none', async () => {
    expect(await muster(`site check --key ${dir}/nosuch.key`, { cwd: site })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the key file ${dir}/nosuch.key cannot be read\nhint:  make a key with: muster secret keygen --key FILE\n`,
    })
  })
})
