import { describe, expect, test } from 'vitest'
import { ModuleFile } from './module.ts'
import { problemsOf } from './testing.ts'

const FILE = 'modules/slurm/module.yaml'

test('a module may say nothing at all', async () => {
  expect(await problemsOf({ [FILE]: '' })).toEqual([])
  expect(ModuleFile.parse({})).toEqual({})
})

test('what it may say', async () => {
  const text = `about: the scheduler
requires: [munge]
packages:
  debian: [slurmd, libpmix2]
  redhat: [slurm-slurmd]
  suse: [slurm-node]
  alpine: [slurm]
  all: [jq]
network: true
env: { SLURM_CONF: /etc/slurm/slurm.conf, EMPTY: "" }
`
  expect(await problemsOf({ [FILE]: text })).toEqual([])
})

test('a key without a value is a key that is not there', async () => {
  expect(await problemsOf({ [FILE]: 'about:\nrequires:\npackages: { debian: }\nnetwork:\nenv:\n' })).toEqual([])
})

const NO_PACKAGE = 'is not the name of a package, with =VERSION where one is wanted'

describe('mistakes', () => {
  test.each<readonly [mistake: string, text: string, ...lines: string[]]>([
    ['an unknown key', 'require: [munge]\n', '1:1: require: unknown key — did you mean requires?'],
    ['an unknown family', 'packages: { debain: [a] }\n', '1:13: packages.debain: unknown key — did you mean debian?'],
    ['packages without a family', 'packages: [slurmd]\n', '1:11: packages: must be a map'],
    ['a package that would be an option', 'packages:\n  all: [jq, -y]\n', `2:13: packages.all.1: ${NO_PACKAGE}`],
    [
      'a module that is no name',
      'requires: [munge, ../etc]\n',
      '1:19: requires.1: is not a name (lower-case letters, digits, - and _)',
    ],
    ['a network that may be', 'network: maybe\n', '1:10: network: must be true or false'],
    ['a variable nobody can read', 'env: { A-B: x }\n', '1:8: env.A-B: is not the name of an environment variable'],
    ['a number as a value', 'env: { LEVEL: 3 }\n', '1:15: env.LEVEL: must be text: write it in quotes'],
    [
      'a NUL, which would end the value in the middle',
      'env: { A: "a\\0b" }\n',
      '1:11: env.A: must not hold a NUL byte',
    ],
    [
      'several',
      'zzz: 1\nenv: { 1: x }\n',
      '1:1: zzz: unknown key',
      '2:8: env.1: is not the name of an environment variable',
    ],
  ])('%s', async (_, text, ...lines) => {
    expect(await problemsOf({ [FILE]: text })).toEqual(lines.map(line => `${FILE}:${line}`))
  })
})

test('the folder of a module has a name as well', async () => {
  expect(await problemsOf({ 'modules/Slurm/module.yaml': '' })).toEqual([
    'modules/Slurm/module.yaml:1:1: is not a name for a module (lower-case letters, digits, - and _)',
  ])
})
