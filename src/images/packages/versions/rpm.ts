import { compareDigits } from './debian.ts'

/** The order of versions rpm has, see rpm-version(7): [epoch:]version-release. */
export function compareRpmVersions(a: string, b: string): number {
  const left = partsOf(a)
  const right = partsOf(b)
  return (
    compareDigits(left.epoch, right.epoch) ||
    compareSegments(left.version, right.version) ||
    compareSegments(left.release, right.release)
  )
}

function partsOf(text: string): { epoch: string; version: string; release: string } {
  const [, epoch = '', rest = text] = /^(\d*):(.*)$/.exec(text) ?? []
  const dash = rest.lastIndexOf('-')
  return {
    epoch,
    version: dash < 0 ? rest : rest.slice(0, dash),
    release: dash < 0 ? '' : rest.slice(dash + 1),
  }
}

/** Digits, letters, ~ and ^ are segments; everything else only parts them. */
const segmentsOf = (version: string): string[] => version.match(/\d+|[A-Za-z]+|[~^]/g) ?? []

function compareSegments(a: string, b: string): number {
  const left = segmentsOf(a)
  const right = segmentsOf(b)
  for (let index = 0; index < left.length || index < right.length; index++) {
    const order = compareSegment(left[index], right[index])
    if (order !== 0) return order
  }
  return 0
}

/**
 * From low to high: ~ (before a release), the end, ^ (a snapshot after a release), letters, digits. Only when both are
 * of one kind do they have to be compared themselves.
 */
function compareSegment(a: string | undefined, b: string | undefined): number {
  const order = kindOf(a) - kindOf(b)
  if (order !== 0 || a === undefined || b === undefined) return order
  return kindOf(a) === DIGITS ? compareDigits(a, b) : a < b ? -1 : a > b ? 1 : 0
}

const DIGITS = 4

function kindOf(segment: string | undefined): number {
  if (segment === undefined) return 1
  if (segment === '~') return 0
  if (segment === '^') return 2
  return /^\d/.test(segment) ? DIGITS : 3
}
