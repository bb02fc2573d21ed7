/**
 * Versions such as 1.2.3-rc.1 held against constraints such as `>1.0.0 <2.0.0 !=1.5.0 || 3.x`: what the matcher
 * semver-constraint asks.
 */
interface Version {
  readonly numbers: readonly [number, number, number]
  readonly pre: readonly string[]
}

type Test = (version: Version) => boolean
/** Holds or not; undefined for what is no version. */
export type Constraint = (version: string) => boolean | undefined

const VERSION = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/

function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch, pre] = VERSION.exec(text) ?? []
  if (major === undefined) return undefined
  return { numbers: [Number(major), Number(minor), Number(patch)], pre: pre?.split('.') ?? [] }
}

const COMPARISONS: Readonly<Record<string, (order: number) => boolean>> = {
  '': order => order === 0,
  '=': order => order === 0,
  '==': order => order === 0,
  '!': order => order !== 0,
  '!=': order => order !== 0,
  '>': order => order > 0,
  '>=': order => order >= 0,
  '<': order => order < 0,
  '<=': order => order <= 0,
}

/** undefined for what is no constraint. */
export function parseConstraint(text: string): Constraint | undefined {
  const alternatives = text.split('||').map(parseAll)
  if (alternatives.includes(undefined)) return undefined
  return version => {
    const parsed = parseVersion(version)
    return parsed && alternatives.some(tests => tests?.every(test => test(parsed)))
  }
}

function parseAll(text: string): Test[] | undefined {
  const words = text.replaceAll(/([=!<>])\s+/g, '$1').split(/\s+/)
  const tests = words.filter(word => word !== '').map(parseOne)
  return tests.length === 0 || tests.includes(undefined) ? undefined : (tests as Test[])
}

function parseOne(word: string): Test | undefined {
  const [, sign = '', rest = ''] = /^([=!<>]*)(.*)$/.exec(word) ?? []
  const compare = COMPARISONS[sign]
  if (compare === undefined) return undefined
  const [, major, minor] = /^(\d{1,9})(?:\.(\d{1,9}))?\.[xX*]$/.exec(rest) ?? []
  if (major !== undefined) return wildcard(compare, Number(major), minor === undefined ? undefined : Number(minor))
  const limit = parseVersion(rest)
  return limit && (version => compare(order(version, limit)))
}

/** 1.x is everything from 1.0.0 up to, but without, 2.0.0. */
function wildcard(compare: (order: number) => boolean, major: number, minor?: number): Test {
  const first: Version = { numbers: [major, minor ?? 0, 0], pre: [] }
  const next: Version = { numbers: minor === undefined ? [major + 1, 0, 0] : [major, minor + 1, 0], pre: [] }
  const place = (version: Version): number => (order(version, first) < 0 ? -1 : order(version, next) < 0 ? 0 : 1)
  return version => compare(place(version))
}

function order(a: Version, b: Version): number {
  for (const [at, number] of a.numbers.entries()) {
    const difference = number - (b.numbers[at] ?? 0)
    if (difference !== 0) return difference
  }
  // A release comes after its candidates.
  if (a.pre.length === 0 || b.pre.length === 0) return b.pre.length - a.pre.length
  for (const [at, part] of a.pre.entries()) {
    const other = b.pre[at]
    if (other === undefined) return 1
    const difference = comparePart(part, other)
    if (difference !== 0) return difference
  }
  return a.pre.length - b.pre.length
}

function comparePart(a: string, b: string): number {
  const [aIsNumber, bIsNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (aIsNumber && bIsNumber) return Number(a) - Number(b)
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1
  return a < b ? -1 : a > b ? 1 : 0
}
