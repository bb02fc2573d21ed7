import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exec } from '../../../lib/exec.ts'
import { PACKAGE_MANAGERS } from '../package.ts'
import { compareVersions } from './compare.ts'

type Case = readonly [older: string, relation: '<' | '=', newer: string]

const DEBIAN: readonly Case[] = [
  ['1.0', '<', '1.1'],
  ['1.9', '<', '1.10'],
  ['1.0', '=', '1.00'],
  ['1.0', '=', '1.0-0'],
  ['1.0', '=', '0:1.0'],
  ['1.0', '=', '00:1.0'],
  ['1.0-1', '<', '1.0-2'],
  ['1.0', '<', '1.0-1'],
  ['9.9', '<', '1:0.1'],
  ['1:1', '<', '2:0'],
  ['1.0~rc1', '<', '1.0'],
  ['1.0~~', '<', '1.0~'],
  ['1.0~~a', '<', '1.0~'],
  ['1.0~rc1-1~bpo12+1', '<', '1.0~rc1-1'],
  ['1.0-1~bpo12+1', '<', '1.0-1'],
  ['1.0-1', '<', '1.0-1+b1'],
  ['1.0-1', '<', '1.0-1+deb12u1'],
  ['1.0-1+b1', '<', '1.0-1+deb12u1'],
  ['1.0', '<', '1.0a'],
  ['1.0a', '<', '1.0b'],
  ['1.0A', '<', '1.0a'],
  ['1.0z', '<', '1.0+'],
  ['1.0-+', '<', '1.0+'],
  ['1.0+a', '<', '1.0.a'],
  ['1-2-3', '<', '1-3-1'],
  ['1.2.3', '<', '1.2.3.0'],
  ['2.36-9', '<', '2.36-9+deb12u7'],
  ['20240101', '<', '20240102'],
  ['1.0+git20240101120000123456789', '<', '1.0+git20240101120000123456790'],
  ['6.1.76-1', '<', '6.1.90-1'],
  ['0.0.0', '<', '0.0.0a'],
]

const RPM: readonly Case[] = [
  ['1.0-1', '<', '1.0-2'],
  ['1.9-1', '<', '1.10-1'],
  ['1.0-1', '=', '1.00-01'],
  ['1.0-1', '=', '0:1.0-1'],
  ['9.9-1', '<', '1:0.1-1'],
  ['1.0~rc1-1', '<', '1.0-1'],
  ['1.0~rc1-1', '<', '1.0~rc2-1'],
  ['1.0~~-1', '<', '1.0~-1'],
  ['1.0-1', '<', '1.0^git1-1'],
  ['1.0^git1-1', '<', '1.0.1-1'],
  ['1.0^git1-1', '<', '1.0^git2-1'],
  ['1.0^git1~pre-1', '<', '1.0^git1-1'],
  ['1.0~rc1-1', '<', '1.0~rc1^git1-1'],
  ['1.0a-1', '<', '1.0.1-1'],
  ['1.0-1', '<', '1.0a-1'],
  ['1.0a-1', '<', '1.0b-1'],
  ['1.0A-1', '<', '1.0a-1'],
  ['1.0-1.el8', '<', '1.0-1.el9'],
  ['1.0-1.el9', '<', '1.0-1.el9_2'],
  ['1.0-1.el9_2', '<', '1.0-1.el9_10'],
  ['1.0_1-1', '=', '1.0.1-1'],
  ['1.0.-1', '=', '1.0-1'],
  ['2.0.1a-1', '<', '2.0.1aa-1'],
  ['5.14.0-70.el9', '<', '5.14.0-162.el9'],
  ['xyz10-1', '<', 'xyz10.1-1'],
  ['xyz.4-1', '<', '8-1'],
  ['xyz.4-1', '<', '2-1'],
  ['20101121-1', '<', '20101122-1'],
  ['10xyz-1', '<', '10.1xyz-1'],
  ['1.0.20240101120000123456789-1', '<', '1.0.20240101120000123456790-1'],
]

const APK: readonly Case[] = [
  ['1.0-r0', '<', '1.0-r1'],
  ['1.0-r9', '<', '1.0-r10'],
  ['1.0', '<', '1.0-r0'],
  ['1.9-r0', '<', '1.10-r0'],
  ['1.02', '<', '1.1'],
  ['1.02', '<', '1.03'],
  ['1.0', '<', '1.01'],
  ['1.06-r6', '<', '006'],
  ['013', '<', '014-r1'],
  ['1.0', '<', '1.0.0'],
  ['1.3-r0', '<', '1.3.1-r0'],
  ['1.0', '<', '1.0a'],
  ['1.0a', '<', '1.0b'],
  ['1.0b', '<', '1.0.1'],
  ['6b-r7', '<', '6c'],
  ['1.0_alpha', '<', '1.0_beta'],
  ['1.0_beta', '<', '1.0_pre'],
  ['1.0_pre', '<', '1.0_rc'],
  ['1.0_rc', '<', '1.0'],
  ['1.0', '<', '1.0_cvs'],
  ['1.0_cvs', '<', '1.0_svn'],
  ['1.0_svn', '<', '1.0_git'],
  ['1.0_git', '<', '1.0_hg'],
  ['1.0_hg', '<', '1.0_p'],
  ['1.0_alpha', '<', '1.0_alpha1'],
  ['1.0_alpha2', '<', '1.0_alpha10'],
  ['1.0_alpha_pre2', '<', '1.0_alpha'],
  ['1.0_rc1-r5', '<', '1.0-r0'],
  ['1.0-r5', '<', '1.0_p1-r0'],
  ['1.0_p9-r0', '<', '1.0_p10-r0'],
  ['1.0_p1-r0', '<', '1.0.1-r0'],
  ['1.0_pre20191002222144-r0', '<', '1.0_pre20210530193627-r0'],
  ['1.0_git20240101', '<', '1.0_git20240101~0a1b'],
  ['1.0~0a', '<', '1.0~0b'],
  ['4_beta', '<', '23_foo'],
  ['1.0', '<', '1.0bc'],
  ['1.0-r0', '=', '1.0-r0'],
  ['nonsense', '<', '0'],
  ['nonsense', '=', 'nonsense'],
]

const SIGN: Readonly<Record<string, number>> = { '<': -1, '=': 0 }

describe.each([
  ['dpkg', DEBIAN],
  ['rpm', RPM],
  ['apk', APK],
] as const)('%s', (manager, cases) => {
  test.each(cases)('%s %s %s', (a, relation, b) => {
    expect(Math.sign(compareVersions(manager, a, b))).toBe(SIGN[relation])
    expect(Math.sign(compareVersions(manager, b, a)) + 0).toBe(-(SIGN[relation] ?? 0) + 0)
  })
})

test('dpkg itself says the same', async () => {
  for (const [a, relation, b] of DEBIAN) {
    const { exitCode } = await exec('dpkg', ['--compare-versions', a, relation === '<' ? 'lt' : 'eq', b], {
      allow: [1],
    })
    expect([a, relation, b, exitCode]).toEqual([a, relation, b, 0])
  }
})

/** One process for all of them. */
async function rpmCompare(pairs: readonly (readonly [string, string])[]): Promise<number[]> {
  const calls = pairs.map(([a, b]) => `print(rpm.vercmp("${a}", "${b}") .. " ")`)
  const { stdout } = await exec('rpm', ['--eval', `%{lua:${calls.join(' ')}}`])
  return stdout.toString('utf8').trim().split(/\s+/).map(Number)
}

test('rpm itself says the same', async () => {
  const answers = await rpmCompare(RPM.map(([a, , b]) => [a, b]))
  expect(answers).toEqual(RPM.map(([, relation]) => SIGN[relation]))
})

const debianPart = fc.stringMatching(/^[0-9][0-9a-bA.+~-]{0,6}[0-9a.+~]$/)
const rpmPart = fc.stringMatching(/^[0-9a-b][0-9a-bA._+~^]{0,6}$/)

test('dpkg says the same of versions nobody would think of', async () => {
  for (const [a, b] of fc.sample(fc.tuple(debianPart, debianPart), 150)) {
    const relation = ['lt', 'eq', 'gt'][Math.sign(compareVersions('dpkg', a, b)) + 1] ?? ''
    const { exitCode } = await exec('dpkg', ['--compare-versions', a, relation, b], { allow: [1] })
    expect([a, relation, b, exitCode]).toEqual([a, relation, b, 0])
  }
})

test('rpm says the same of versions nobody would think of', async () => {
  const full = fc.tuple(rpmPart, rpmPart).map(([version, release]) => `${version}-${release}`)
  const pairs = fc.sample(fc.tuple(full, full), 2000)
  const answers = await rpmCompare(pairs)
  expect(pairs.map(([a, b], index) => [a, b, answers[index]])).toEqual(
    pairs.map(([a, b]) => [a, b, Math.sign(compareVersions('rpm', a, b))]),
  )
})

describe.each(PACKAGE_MANAGERS)('the order of %s', manager => {
  const version = fc.stringMatching(/^[0-9](\.[0-9]{1,2}|[a-b]|_(alpha|p)[0-9]?|~[0-9a]|\^[0-9]){0,3}(-r?[0-9])?$/)
  const order = (a: string, b: string): number => Math.sign(compareVersions(manager, a, b))

  test('is one: the same both ways, and without circles', () => {
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(order(a, a)).toBe(0)
        expect(order(a, b) + order(b, a)).toBe(0)
        const [low = '', , high = ''] = [a, b, c].sort(order)
        expect(order(low, high)).toBeLessThanOrEqual(0)
      }),
      { numRuns: 2000 },
    )
  })
})
