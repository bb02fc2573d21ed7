import { compareDigits } from './debian.ts'

/**
 * The order of versions apk has, see apk-package(5): number{.number}{letter}{_suffix{number}}{~hash}{-r#}, such as
 * 1.2.3b_rc4_p5~0a1b-r6.
 */
export function compareApkVersions(a: string, b: string): number {
  const left = partsOf(a)
  const right = partsOf(b)
  for (let index = 0; index < left.parts.length || index < right.parts.length; index++) {
    const order = comparePart(left.parts[index] ?? END, right.parts[index] ?? END)
    if (order !== 0) return order
  }
  return compareText(left.rest, right.rest)
}

interface Part {
  readonly kind: Kind
  readonly value: string
}

/** In the order they may follow each other: who is through with one kind sooner is the older one. */
const KINDS = ['first', 'number', 'letter', 'suffix', 'suffixNumber', 'hash', 'revision', 'end'] as const
type Kind = (typeof KINDS)[number]

const END: Part = { kind: 'end', value: '' }

/** Those before a release and those after it. */
const BEFORE = ['alpha', 'beta', 'pre', 'rc']
const SUFFIXES = [...BEFORE, 'cvs', 'svn', 'git', 'hg', 'p']

const VERSION =
  /^(\d+)((?:\.\d+)*)([a-z]?)((?:_(?:alpha|beta|pre|rc|cvs|svn|git|hg|p)\d*)*)((?:~[0-9a-f]+)?)((?:-r\d+)?)/

/** As much of it as is a version, and the rest: some packages in the wild are not quite right. */
function partsOf(version: string): { parts: readonly Part[]; rest: string } {
  const [all = '', first = '', numbers = '', letter = '', suffixes = '', hash = '', revision = ''] =
    VERSION.exec(version) ?? []
  const parts: Part[] = [
    { kind: 'first', value: first },
    ...numbers.split('.').map((value): Part => ({ kind: 'number', value })),
    { kind: 'letter', value: letter },
    ...suffixes.split('_').flatMap(suffixParts),
    { kind: 'hash', value: hash.slice(1) },
    { kind: 'revision', value: revision.slice('-r'.length) },
  ]
  return { parts: parts.filter(part => part.value !== ''), rest: version.slice(all.length) }
}

function suffixParts(suffix: string): Part[] {
  const [, value = '', number = ''] = /^([a-z]+)(\d*)$/.exec(suffix) ?? []
  return [
    { kind: 'suffix', value },
    { kind: 'suffixNumber', value: number },
  ]
}

function comparePart(a: Part, b: Part): number {
  if (a.kind === b.kind) return compareValues(a.kind, a.value, b.value)
  if (isBefore(a) !== isBefore(b)) return isBefore(a) ? -1 : 1
  return KINDS.indexOf(b.kind) - KINDS.indexOf(a.kind)
}

const isBefore = ({ kind, value }: Part): boolean => kind === 'suffix' && BEFORE.includes(value)

function compareValues(kind: Kind, a: string, b: string): number {
  if (kind === 'suffix') return SUFFIXES.indexOf(a) - SUFFIXES.indexOf(b)
  // Behind a point a leading zero makes it a decimal fraction: 1.02 comes before 1.1.
  const isText = kind === 'letter' || kind === 'hash' || (kind === 'number' && (a.startsWith('0') || b.startsWith('0')))
  return isText ? compareText(a, b) : compareDigits(a, b)
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
