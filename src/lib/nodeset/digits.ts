/**
 * The digits of a node's name, as an integer. Zeros in front belong to the name (n1, n01 and n001 are three nodes), so a
 * value alone will not do. Counting all strings of digits, the shorter first, gives each a code of its own, in natural order:
 *
 *   '0' → 0 … '9' → 9, '00' → 10 … '09' → 19, '10' → 20 … '99' → 109, '000' → 110 …
 *
 * A set of such strings is then a set of integers, kept as spans: n[1-12] is 1…9 and 20…22, n[01-12] is 11…22.
 */
export interface Span {
  readonly first: number
  readonly last: number
}

/** Numbers of one length, next to each other: what '08-11' says is { width: 2, low: 8, high: 11 }. */
export interface Run {
  readonly width: number
  readonly low: number
  readonly high: number
}

/** The codes of all strings this long stay below 2^53, where integers are exact; one digit more would not. */
export const maxDigits = 15

/** The code of '000…', `width` zeros: what all shorter strings take up, 10 + 100 + … */
const zeros = (width: number): number => (10 ** width - 10) / 9

export const codeOf = (width: number, value: number): number => zeros(width) + value

/** codeOfDigits('07') → 17 */
export const codeOfDigits = (digits: string): number => codeOf(digits.length, Number(digits))

/** The span of codes taken apart by length: codes 8…20 are '8'…'9' and '00'…'10'. */
export function runsOf({ first, last }: Span): Run[] {
  const runs: Run[] = []
  let width = 1
  while (zeros(width + 1) <= first) width++
  for (; zeros(width) <= last; width++) {
    const base = zeros(width)
    const low = Math.max(first - base, 0)
    const high = Math.min(last - base, 10 ** width - 1)
    runs.push({ width, low, high })
  }
  return runs
}

export const digitsOf = (width: number, value: number): string => String(value).padStart(width, '0')

/** How many codes the spans hold. */
export const countOf = (spans: readonly Span[]): number =>
  spans.reduce((count, { first, last }) => count + (last - first + 1), 0)

/** Spans in any order, overlapping or not, as the fewest spans in order: 5…6, 1…2, 2…4 → 1…6. */
export function tidy(spans: readonly Span[]): readonly Span[] {
  if (isTidy(spans)) return spans
  const tidied: Span[] = []
  let open: { first: number; last: number } | undefined
  for (const { first, last } of spans.toSorted((a, b) => a.first - b.first)) {
    if (open && first <= open.last + 1) open.last = Math.max(open.last, last)
    else tidied.push((open = { first, last }))
  }
  return tidied
}

function isTidy(spans: readonly Span[]): boolean {
  let before = -Infinity
  for (const { first, last } of spans) {
    if (first <= before + 1) return false
    before = last
  }
  return true
}

/** Every string of `left` followed by every string of `right`: 1 and 01…03 → 101…103. Costs as much as `left` is large. */
export function joinDigits(left: readonly Span[], right: readonly Span[]): readonly Span[] {
  const tails = right.flatMap(runsOf)
  const joined: Span[] = []
  for (const { first, last } of left) {
    for (let code = first; code <= last; code++) {
      for (const { width, low, high } of tails) {
        // Below a string s of code c, its followers of this width begin at (c + 1) * 10^width + the code of all zeros.
        const base = (code + 1) * 10 ** width + zeros(width)
        joined.push({ first: base + low, last: base + high })
      }
    }
  }
  return tidy(joined)
}

/** The most digits any string of the spans has. */
export const widest = (spans: readonly Span[]): number =>
  Math.max(...spans.slice(-1).map(span => runsOf(span).at(-1)?.width ?? 0), 0)
