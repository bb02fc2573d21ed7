import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { leaves } from '../../src/cli/manual.ts'
import { commands } from '../../src/cli/spec.ts'
import { type Lab, fromJson, fromYaml, startLab } from './testing.ts'

/** What programs read: the same content as JSON and as YAML, from every command that reads. */
let lab: Lab
beforeAll(async () => {
  lab = await startLab()
  await lab.muster('site apply --yes')
  await lab.muster('node set n001 boot.args+=quiet')
  await lab.muster('token create ci')
  await lab.muster(`secret keygen --site site --key ${join(lab.dir, 'age.key')}`)
  await lab.muster('secret set site.yaml defaults.vars.password --site site', { input: 'hunter2' })
})
afterAll(() => lab[Symbol.asyncDispose]())

const READS: readonly [words: string, status?: number][] = [
  ['site check --site site'],
  ['site show n001 --site site'],
  ['site diff'],
  ['site diff --exit-code', 1],
  ['site diff --against HEAD~2 --site site'],
  ['site log'],
  ['site schema group'],
  ['explain n001'],
  ['explain gpu01 boot --site site'],
  ['files show n001 --site site'],
  ['files diff n001'],
  ['nodeset fold n1 n2'],
  ['nodeset expand n[1-3]'],
  ['nodeset count n[1-3]'],
  ['nodeset diff n[1-3] n[2-4]', 1],
  ['node ls'],
  ['node ls @gpu'],
  ['node show n001'],
  ['node timeline n001'],
  ['boot script n001'],
  ['boot explain n001'],
  ['discover ls'],
  ['lab status --dir lab'],
  ['group ls'],
  ['group show compute'],
  ['image ls --data images'],
  ['image verify --data images'],
  ['image gc --dry-run --data images'],
  ['image channels'],
  ['key ls --site site'],
  ['module ls --site site --data images'],
  ['module plan muster-agent --site site --data images'],
  ['secret ls --site site'],
  ['token ls'],
  ['ca show'],
  ['status'],
  ['events'],
  ['audit'],
]
/** Commands that change something, run for long, print what is no data, or read an image (test/images/). */
const OTHERS = [
  'serve',
  'discover adopt',
  'discover forget',
  'lab up',
  'lab down',
  'lab console',
  'lab power',
  'lab log',
  'lab simulate',
  'ci run',
  'ci init',
  'image build',
  'image test',
  'image learn',
  'image report',
  'image show',
  'image log',
  'image diff',
  'image rm',
  'image export',
  'image import',
  'image shell',
  'image sign',
  'image promote',
  'image rollback',
  'image history',
  'image forget',
  'image push',
  'image pull',
  'site init',
  'site apply',
  'site revert',
  'node add',
  'node set',
  'node rm',
  'node swap',
  'node revoke',
  'group add',
  'group set',
  'group rm',
  'key new',
  'key revoke',
  'secret keygen',
  'secret set',
  'secret edit',
  'secret rotate',
  'token create',
  'token revoke',
  'ca renew',
  'ca export',
  'backup',
  'restore',
  'completion',
  'man',
]

it('knows of every command whether it reads', () => {
  const all = [...leaves(commands)].map(({ name }) => name.replace('muster ', ''))
  const known = [...OTHERS, ...all.filter(name => READS.some(([words]) => `${words} `.startsWith(`${name} `)))]
  expect(known.toSorted()).toEqual(all.toSorted())
})

describe.each(READS)('muster %s', (words, status = 0) => {
  it('is the same as JSON and as YAML', async () => {
    const [json, short, yaml] = await Promise.all(
      ['-o json', '--json', '-o yaml'].map(format => lab.muster(`${words} ${format}`)),
    )
    expect(json).toMatchObject({ status, stderr: '' })
    expect(short).toEqual(json)
    expect(yaml).toMatchObject({ status, stderr: '' })
    const content = fromJson(json?.stdout ?? '')
    expect(content ?? undefined).toBeDefined()
    expect(fromYaml(yaml?.stdout ?? '')).toEqual(content)
  })
})

test.each<[words: string, content: unknown]>([
  ['nodeset fold n1 n2', 'n[1-2]'],
  ['nodeset expand n[1-3]', ['n1', 'n2', 'n3']],
  ['nodeset count n[1-3]', 3],
  ['nodeset diff n[1-3] n[2-4]', { removed: 'n1', added: 'n4' }],
  ['site check --site site', { nodes: 7, problems: [], warnings: [] }],
  ['group show gpu', { name: 'gpu', nodes: 'gpu[01-02]', count: 2 }],
])('muster %s --json', async (words, content) => {
  expect(fromJson((await lab.muster(`${words} --json`)).stdout)).toEqual(content)
})

test('times are exact', async () => {
  const [generation] = fromJson((await lab.muster('site log --json')).stdout) as { appliedAt: string }[]
  expect(generation?.appliedAt).toBe(new Date(generation?.appliedAt ?? '').toISOString())
})

test('an empty list is a list', async () => {
  expect((await lab.muster('events --kind nothing.* --json')).stdout).toBe('[]\n')
  expect(fromYaml((await lab.muster('events --kind nothing.* -o yaml')).stdout)).toEqual([])
})

describe('what changes something says so to programs, too', () => {
  test.each<[words: string, content: unknown, input?: string]>([
    [
      'node set n002 boot.root=disk --json',
      { commit: expect.stringMatching(/^[0-9a-f]{40}$/) as string, files: ['nodes.yaml'] },
    ],
    [
      'secret set site.yaml defaults.vars.other --site site --json',
      { file: 'site.yaml', path: 'defaults.vars.other', files: ['site.yaml'] },
      'hunter2',
    ],
    ['site apply --yes --json', { generation: { number: 2, subject: expect.any(String) as string }, unchanged: false }],
    ['site apply -o json', { generation: { number: 2 }, unchanged: true }],
    ['site revert --yes --json', { generation: { number: 3 } }],
    ['token create app --json', { token: expect.any(String) as string, info: { name: 'app', role: 'viewer' } }],
    ['backup state.db --json', { file: 'state.db' }],
    ['restore state.db --data other --yes --json', { restored: 'state.db' }],
    ['site init new --json', { dir: expect.stringMatching(/\/new$/) as string }],
  ])('muster %s', async (words, content, input) => {
    const { status, stdout, stderr } = await lab.muster(words, input === undefined ? {} : { input })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(fromJson(stdout)).toMatchObject(content as object)
  })

  it('says with --apply what was edited and what was applied, as one value', async () => {
    const { stdout } = await lab.muster('node set n003 boot.root=disk --apply --json')
    expect(fromJson(stdout)).toMatchObject({ files: ['nodes.yaml'] })
    expect(stdout).toMatch(/"number": 4\b/)
  })
})
