import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { type RunOptions, makeSite, muster, temporaryDirectory } from './testing.ts'

let dir: string
let site: string
beforeAll(async () => {
  dir = await temporaryDirectory()
  site = await makeSite(join(dir, 'site'))
})
afterAll(() => rm(dir, { recursive: true }))

type Case = [words: readonly string[], stdout: string, options?: RunOptions]

describe('without a site', () => {
  test.each<Case>([
    [['fold', 'n001', 'n002', 'n003'], 'n[001-003]\n'],
    [['fold', 'n1,n3', 'n2'], 'n[1-3]\n'],
    [['fold', 'n[1-5]!n3'], 'n[1-2,4-5]\n'],
    [['fold', 'r[1-2]n[01-02]'], 'r[1-2]n[01-02]\n'],
    [['fold', 'b', 'a'], 'a,b\n'],
    [['fold', '-x', 'n2', 'n[1-3]'], 'n[1,3]\n'],
    [['fold', '--exclude', 'n[2-3]', 'n[1-3]'], 'n1\n'],
    [['fold', 'n1', '-x', 'n[1-9]'], '\n'],
    // Standard input, alone or where - stands.
    [['fold'], 'n[1-4]\n', { input: 'n1 n2\nn3,n4\n' }],
    [['fold', '-'], 'n[1-2]\n', { input: 'n1\nn2' }],
    [['fold', '-', 'n9'], 'n[1,9]\n', { input: 'n1\n' }],
    [['fold', 'n9', '-', '-x', 'n1'], 'n[2,9]\n', { input: 'n[1-2]\n' }],
    [['fold', 'n9'], 'n9\n', { input: 'n1\n' }],
    [['fold'], '\n', { input: '' }],
    [['fold'], '\n', { input: '\n\n' }],
    [['expand', 'n[001-003]'], 'n001 n002 n003\n'],
    [['expand', 'n[1-9/4]'], 'n1 n5 n9\n'],
    [['expand', '-s', '\\n', 'n[1-2]'], 'n1\nn2\n'],
    [['expand', '-s', '\\t', 'n[1-2]'], 'n1\tn2\n'],
    [['expand', '-s', ',', 'n[1-2]'], 'n1,n2\n'],
    [['expand', '-s', '', 'n[1-2]'], 'n1n2\n'],
    [['expand', '--separator', ', ', 'n[1-3]', '-x', 'n2'], 'n1, n3\n'],
    [['expand'], 'n1 n2\n', { input: 'n[1-2]' }],
    [['count', 'n[1-128]'], '128\n'],
    [['count', 'n[1-3]', 'n[2-4]'], '4\n'],
    [['count', 'n[1-10]', '-x', 'n[1-3]'], '7\n'],
    [['count'], '2\n', { input: 'n1\nn2\nn1\n' }],
    [['count'], '0\n', { input: '' }],
    [['count', 'n[1-1000000]'], '1000000\n'],
    [['diff', 'n[1-3]', 'n1,n2,n3'], ''],
  ])('%j', async (words, stdout, options) => {
    expect(await muster(['nodeset', ...words], { cwd: dir, ...options })).toEqual({ status: 0, stdout, stderr: '' })
  })

  test.each<Case>([
    [['diff', 'n[1-10]', 'n[5-12]'], '- n[1-4]\n+ n[11-12]\n'],
    [['diff', 'n1', 'n[1-2]'], '+ n2\n'],
    [['diff', 'n[1-2]', 'n1'], '- n2\n'],
  ])('%j is exit status 1', async (words, stdout) => {
    expect(await muster(['nodeset', ...words])).toEqual({ status: 1, stdout, stderr: '' })
  })

  test.each<[words: readonly string[], status: number, error: string, options?: RunOptions]>([
    [['fold', 'n[1-'], 1, 'node set n[1-, column 5: expected the end of the range 1-, found the end'],
    [['fold', 'n[3-1]'], 1, 'node set n[3-1], column 3: '],
    [['expand', 'n1', '-x', 'n['], 1, 'node set n[, column 2: this [ is never closed'],
    [['count', 'n1!'], 1, 'node set n1!, column 3: nothing follows the !'],
    [['diff', 'n1', ']'], 1, 'node set ], column 1: '],
    [['fold'], 1, 'node set n1 n[2-, column 8: ', { input: 'n1 n[2-' }],
    [['fold', '@compute'], 1, 'groups and wildcards need a site to look in'],
    [['fold', 'n*'], 1, 'groups and wildcards need a site to look in'],
    [['diff', 'n1'], 2, "missing required argument 'b'"],
    [['fold', '--site', 'nowhere', '@compute'], 1, '/nowhere holds no site (there is no site.yaml in it)'],
  ])('%j is an error', async (words, status, error, options) => {
    const ran = await muster(['nodeset', ...words], options)
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status, stdout: '' })
    expect(ran.stderr).toMatch(/^error: .*\nhint: {2}.*\n$/)
    expect(ran.stderr).toContain(`error: ${error}`)
  })
})

describe('groups and wildcards', () => {
  const CASES: Case[] = [
    [['fold', '@compute'], 'gpu[01-02],n[001-004]\n'],
    [['fold', '@compute!@gpu'], 'n[001-004]\n'],
    [['fold', '@compute', '-x', '@gpu'], 'n[001-004]\n'],
    [['expand', '@gpu'], 'gpu01 gpu02\n'],
    [['count', '@all'], '7\n'],
    [['fold', 'n00*'], 'n[001-004]\n'],
    [['fold', '*1'], 'gpu01,login1,n001\n'],
    [['fold'], 'gpu[01-02]\n', { input: '@gpu' }],
    [['diff', '@gpu', 'gpu*'], ''],
  ]

  test.each(CASES)('%j in the site', async (words, stdout, options) => {
    expect(await muster(['nodeset', ...words], { cwd: site, ...options })).toEqual({ status: 0, stdout, stderr: '' })
  })

  it('come from the site further up', async () => {
    expect((await muster('nodeset count @all', { cwd: join(site, 'groups') })).stdout).toBe('7\n')
  })

  it('come from --site, wherever it stands, or MUSTER_SITE', async () => {
    const stdout = 'gpu[01-02]\n'
    expect(await muster('nodeset fold @gpu --site site', { cwd: dir })).toMatchObject({ status: 0, stdout })
    expect(await muster('--site site nodeset fold @gpu', { cwd: dir })).toMatchObject({ status: 0, stdout })
    expect(await muster('nodeset fold @gpu', { env: { MUSTER_SITE: site } })).toMatchObject({ status: 0, stdout })
  })

  it('that are unknown are told', async () => {
    expect(await muster('nodeset fold @gpus', { cwd: site })).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: node set @gpus, column 1: no group is named gpus\nhint:  list the groups with: muster group ls\n',
    })
  })
})
