import { chmod, mkdir, rename, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { type Files, directoryOf, writeFiles } from '../../site/testing.ts'
import { readModules } from './read.ts'

const SLURM = `about: the workload manager
requires:
  - munge
  - users
packages:
  debian: [slurm-wlm, libpmix2]
  redhat: [slurm]
  all: []
  suse:
network: true
env:
  SLURM_CONF_SERVER: head
  EMPTY: ""
`

const SMALL: Files = {
  'modules/slurm/module.yaml': SLURM,
  'modules/slurm/install.sh': 'set -eu\n',
  'modules/slurm/files/slurm.conf': 'x\n',
  'modules/slurm/files.list': 'slurm.conf\n',
  'modules/munge/module.yaml': '# nothing to say\n',
  'modules/munge/install.sh': '',
}

test('what is in a folder of modules', async () => {
  const dir = await directoryOf(SMALL)
  const found = await readModules(join(dir, 'modules'))
  expect([...found.keys()]).toEqual(['munge', 'slurm'])
  expect(found.get('slurm')).toEqual({
    name: 'slurm',
    dir: join(dir, 'modules/slurm'),
    origin: 'site',
    file: 'modules/slurm/module.yaml',
    about: 'the workload manager',
    requires: [
      { name: 'munge', line: 3, column: 5 },
      { name: 'users', line: 4, column: 5 },
    ],
    packages: { debian: ['slurm-wlm', 'libpmix2'], redhat: ['slurm'], all: [] },
    network: true,
    env: { SLURM_CONF_SERVER: 'head', EMPTY: '' },
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  })
  expect(found.get('munge')).toMatchObject({ requires: [], packages: {}, network: false, env: {} })
})

test('of a source they are told with its name', async () => {
  const dir = await directoryOf(SMALL)
  const found = await readModules(join(dir, 'modules'), 'common')
  expect(found.get('munge')).toMatchObject({ origin: 'common', file: 'common:munge/module.yaml' })
})

test('none where there is no such folder, and what is no module is passed over', async () => {
  const dir = await directoryOf({ 'm/README.md': '', 'm/docs/a.md': '', 'm/.git/install.sh': '', 'm/Docs/x': '' })
  expect(await readModules(join(dir, 'none'))).toEqual(new Map())
  expect(await readModules(join(dir, 'm'))).toEqual(new Map())
})

async function problemsOf(dir: string): Promise<readonly string[]> {
  try {
    await readModules(dir)
  } catch (error) {
    if (error instanceof MusterError && error.code === 'MODULE_INVALID') return error.details
    throw error
  }
  return []
}

describe('refused', () => {
  test.each<[name: string, files: Files, expected: string[]]>([
    [
      'everything at its line',
      {
        'modules/a/module.yaml': 'about: 7\nrequires: [b, "B c"]\nnetwrok: true\nenv:\n  1X: a\n  N: 5\n',
        'modules/a/install.sh': '',
      },
      [
        'modules/a/module.yaml:1:8: about: must be text: write it in quotes',
        'modules/a/module.yaml:2:15: requires.1: is not a name (lower-case letters, digits, - and _)',
        'modules/a/module.yaml:3:1: netwrok: unknown key — did you mean network?',
        'modules/a/module.yaml:5:3: env.1X: is not the name of an environment variable',
        'modules/a/module.yaml:6:6: env.N: must be text: write it in quotes',
      ],
    ],
    [
      'packages that would be options',
      { 'modules/a/module.yaml': 'packages: { debian: ["--allow-x", "a b", ok] }\n', 'modules/a/install.sh': '' },
      [
        'modules/a/module.yaml:1:22: packages.debian.0: is not the name of a package, with =VERSION where one is wanted',
        'modules/a/module.yaml:1:35: packages.debian.1: is not the name of a package, with =VERSION where one is wanted',
      ],
    ],
    [
      'a family that is none',
      { 'modules/a/module.yaml': 'packages: { debain: [a] }\n', 'modules/a/install.sh': '' },
      ['modules/a/module.yaml:1:13: packages.debain: unknown key — did you mean debian?'],
    ],
    [
      'a secret',
      { 'modules/a/module.yaml': 'env:\n  KEY: !age x\n', 'modules/a/install.sh': '' },
      ['modules/a/module.yaml:2:13: env.KEY: must be text'],
    ],
    [
      'no YAML',
      { 'modules/a/module.yaml': 'a: [\n', 'modules/a/install.sh': '' },
      [expect.stringMatching(/^modules\/a\/module\.yaml:\d+:\d+: /)],
    ],
    [
      'a list',
      { 'modules/a/module.yaml': '- a\n', 'modules/a/install.sh': '' },
      ['modules/a/module.yaml:1:1: must be a map of keys and values'],
    ],
    [
      'no text',
      { 'modules/a/module.yaml': Buffer.from([0xff, 0xfe]), 'modules/a/install.sh': '' },
      ['modules/a/module.yaml:1:1: is not text (not UTF-8)'],
    ],
    [
      'too much text',
      { 'modules/a/module.yaml': `about: ${'x'.repeat(2 ** 20)}\n`, 'modules/a/install.sh': '' },
      ['modules/a/module.yaml:1:1: is too large: at most 1 MiB'],
    ],
    ['no install.sh', { 'modules/a/module.yaml': '' }, ['modules/a/install.sh:1:1: is missing']],
    ['no module.yaml', { 'modules/a/install.sh': '' }, ['modules/a/module.yaml:1:1: is missing; it may be empty']],
    [
      'a name that is none',
      { 'modules/A b/module.yaml': '', 'modules/A b/install.sh': '' },
      ['modules/A b:1:1: is not a name for a module (lower-case letters, digits, - and _)'],
    ],
    [
      'a folder instead of a script',
      { 'modules/a/module.yaml': '', 'modules/a/install.sh/x': '' },
      ['modules/a/install.sh:1:1: is not a file'],
    ],
    [
      'several modules at once',
      { 'modules/a/module.yaml': '', 'modules/b/module.yaml': 'x: 1\n', 'modules/b/install.sh': '' },
      ['modules/a/install.sh:1:1: is missing', 'modules/b/module.yaml:1:1: x: unknown key'],
    ],
  ])('%s', async (_, files, expected) => {
    expect(await problemsOf(join(await directoryOf(files), 'modules'))).toEqual(expected)
  })

  test.each<[link: string, target: string, expected: string[]]>([
    ['a/install.sh', '../../secret', ['modules/a/install.sh:1:1: is a symbolic link that leads out of the module']],
    ['a/install.sh', '../b/install.sh', ['modules/a/install.sh:1:1: is a symbolic link that leads out of the module']],
    ['a/install.sh', '../ab/install.sh', ['modules/a/install.sh:1:1: is a symbolic link that leads out of the module']],
    ['a/module.yaml', '../../secret', ['modules/a/module.yaml:1:1: is a symbolic link that leads out of the module']],
    ['a/files/x', '/etc/passwd', ['modules/a/files/x:1:1: is a symbolic link that leads out of the module']],
    ['a/files/x', '../../../nothing', ['modules/a/files/x:1:1: is a symbolic link that leads out of the module']],
    ['a/files/x', '../../../modules-other', ['modules/a/files/x:1:1: is a symbolic link that leads out of the module']],
    ['a/files/x', 'nothing', ['modules/a/files/x:1:1: is a symbolic link to nothing']],
    ['a/files/x', 'x', ['modules/a/files/x:1:1: is a symbolic link to nothing']],
    ['a/install.sh', 'nothing', ['modules/a/install.sh:1:1: is a symbolic link to nothing']],
    ['a/install.sh', 'files', ['modules/a/install.sh:1:1: is not a file']],
    ['a/files/x', '../install.sh', []],
    ['a/install.sh', 'files/real.sh', []],
    ['c', 'b', ['modules/c:1:1: is a symbolic link: a module must be a folder of its own']],
    ['c', '../secret', []],
  ])('the link %s → %s: %j', async (link, target, expected) => {
    const dir = await directoryOf({
      secret: '',
      'modules/a/files/real.sh': '',
      'modules/b/module.yaml': '',
      'modules/b/install.sh': '',
      'modules/ab/module.yaml': '',
      'modules/ab/install.sh': '',
      ...(link === 'a/install.sh' ? {} : { 'modules/a/install.sh': '' }),
      ...(link === 'a/module.yaml' ? {} : { 'modules/a/module.yaml': '' }),
    })
    await symlink(target, join(dir, 'modules', link))
    expect(await problemsOf(join(dir, 'modules'))).toEqual(expected)
  })

  test('a link named from the root, even when it leads inside', async () => {
    const dir = await directoryOf(SMALL)
    await symlink(join(dir, 'modules/slurm/install.sh'), join(dir, 'modules/slurm/link'))
    expect(await problemsOf(join(dir, 'modules'))).toEqual([
      'modules/slurm/link:1:1: is a symbolic link that leads out of the module',
    ])
  })

  test('what is neither a file nor a folder', async () => {
    const dir = await directoryOf(SMALL)
    await exec('mkfifo', [join(dir, 'modules/slurm/pipe')])
    expect(await problemsOf(join(dir, 'modules'))).toEqual(['modules/slurm/pipe:1:1: is not a plain file'])
  })

  test('a name that is not UTF-8', async () => {
    const dir = await directoryOf(SMALL)
    await writeFile(Buffer.concat([Buffer.from(`${dir}/modules/slurm/`), Buffer.from([0xff])]), '')
    expect(await problemsOf(join(dir, 'modules'))).toEqual(['modules/slurm/\uFFFD:1:1: has a name that is not UTF-8'])
  })
})

const digestOf = async (dir: string): Promise<string | undefined> =>
  (await readModules(join(dir, 'modules'))).get('slurm')?.digest

describe('the digest', () => {
  test('is the same wherever and whenever the files lie there', async () => {
    const dir = await directoryOf(SMALL)
    const other = await directoryOf(Object.fromEntries(Object.entries(SMALL).reverse()))
    await utimes(join(other, 'modules/slurm/install.sh'), 1, 1)
    await chmod(join(other, 'modules/slurm/install.sh'), 0o600)
    await mkdir(join(other, 'modules/slurm/empty'))
    await writeFiles(other, { 'modules/slurm/.git/config': 'x\n' })
    expect(await digestOf(other)).toBe(await digestOf(dir))
    expect(await digestOf(dir)).toBe('sha256:f0a44803166d14fb4e7f4de289726a7d7a7a4dd8d9ab292120ebdee5f25c9a18')
  })

  test.each<[name: string, change: (slurm: string) => Promise<unknown>]>([
    ['content', slurm => writeFile(join(slurm, 'install.sh'), 'set -e\n')],
    ['module.yaml', slurm => writeFile(join(slurm, 'module.yaml'), '')],
    ['a file deeper down', slurm => writeFile(join(slurm, 'files/slurm.conf'), 'y\n')],
    ['the executable bit', slurm => chmod(join(slurm, 'install.sh'), 0o755)],
    ['one file more', slurm => writeFile(join(slurm, 'more'), '')],
    ['another name', slurm => rename(join(slurm, 'files/slurm.conf'), join(slurm, 'files/slurm.cnf'))],
    ['another place', slurm => rename(join(slurm, 'files/slurm.conf'), join(slurm, 'slurm.conf'))],
    ['a link', slurm => symlink('install.sh', join(slurm, 'link'))],
  ])('changes with %s', async (_, change) => {
    const dir = await directoryOf(SMALL)
    const before = await digestOf(dir)
    await change(join(dir, 'modules/slurm'))
    expect(await digestOf(dir)).not.toBe(before)
  })

  test('changes with what a link leads to', async () => {
    const dir = await directoryOf(SMALL)
    await symlink('install.sh', join(dir, 'modules/slurm/link'))
    const other = await directoryOf(SMALL)
    await symlink('module.yaml', join(other, 'modules/slurm/link'))
    expect(await digestOf(other)).not.toBe(await digestOf(dir))
  })

  test('does not change with another module', async () => {
    const dir = await directoryOf(SMALL)
    const before = await digestOf(dir)
    await writeFiles(dir, { 'modules/munge/install.sh': 'true\n' })
    expect(await digestOf(dir)).toBe(before)
  })
})
