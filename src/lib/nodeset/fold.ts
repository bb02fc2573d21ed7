/**
 * A tree written in brackets, the shortest way found:
 *
 *   n1 n2 n3 n10           → n[1-3,10]
 *   n8 n9 n10              → n[8-10]         but n08 n09 n10 → n[08-10]
 *   n1 n01 n02             → n[1,01-02]      zeros in front are kept apart
 *   r1n1 r1n2 r2n1 r2n2    → r[1-2]n[1-2]
 *   r1n1 r1n2 r2n1         → r1n[1-2],r2n1   what is no rectangle becomes several
 *   x1000c0s0b0n0          → x1000c0s0b0n0   one number needs no brackets
 */
import { digitsOf, runsOf, tidy, type Run, type Span } from './digits.ts'
import { hole } from './name.ts'
import { end, type Tree } from './tree.ts'

/** A rectangle: for each number of the pattern the values it takes, as spans and as written. */
type Box = readonly Side[]
interface Side {
  readonly spans: readonly Span[]
  readonly text: string
}

export function fold(pattern: string, tree: Tree): string {
  if (tree === end) return pattern
  const boxes = merge(boxesOf(tree)).sort(compareBoxes)
  const [text = '', ...texts] = pattern.split(hole)
  return boxes.map(box => text + box.map((side, i) => inBrackets(side.text) + texts[i]).join('')).join(',')
}

const inBrackets = (ranges: string): string => (/[,-]/.test(ranges) ? `[${ranges}]` : ranges)

/** One box for each way down to the last level. */
function boxesOf(tree: Tree, before: Box = []): Box[] {
  if (tree[0]?.rest === end) return [[...before, sideOf(tree)]]
  return tree.flatMap(branch => boxesOf(branch.rest, [...before, sideOf([branch])]))
}

const sideOf = (spans: readonly Span[]): Side => ({ spans, text: rangesOf(spans) })

/**
 * Boxes that differ on one side only become one, side by side from the last, until nothing changes. Boxes do not overlap,
 * so this is exact; finding partners by what they have in common keeps it far from comparing each with each.
 */
function merge(boxes: readonly Box[]): Box[] {
  const depth = boxes[0]?.length ?? 0
  let merged = [...boxes]
  for (let before = Infinity; merged.length < before && merged.length > 1;) {
    before = merged.length
    for (let side = depth - 1; side >= 0; side--) merged = mergeAlong(merged, side)
  }
  return merged
}

function mergeAlong(boxes: readonly Box[], side: number): Box[] {
  const partners = Map.groupBy(boxes, box => box.map(({ text }, i) => (i === side ? '' : text)).join(hole))
  return [...partners.values()].flatMap(group => {
    const [box] = group
    if (!box || group.length === 1) return group
    const spans = group.flatMap(each => each[side]?.spans ?? [])
    return [box.with(side, sideOf(tidy(spans)))]
  })
}

/** By the first name in each. */
function compareBoxes(a: Box, b: Box): number {
  for (const [i, side] of a.entries()) {
    const order = firstOf(side) - firstOf(b[i])
    if (order !== 0) return order
  }
  return 0
}
const firstOf = (side: Side | undefined): number => side?.spans[0]?.first ?? -1

/** Spans as written between brackets: '1-3,10', '08-11', '1,01-02'. */
function rangesOf(spans: readonly Span[]): string {
  const ranges: string[] = []
  let from: Run | undefined
  let to: Run | undefined
  const close = (): void => {
    if (!from || !to) return
    const first = digitsOf(from.width, from.low)
    const last = digitsOf(to.width, to.high)
    ranges.push(first === last ? first : `${first}-${last}`)
  }
  for (const span of spans) {
    for (const run of runsOf(span)) {
      if (!from || !to || isPadded(from) || !follows(run, to)) {
        close()
        from = run
      }
      to = run
    }
  }
  close()
  return ranges.join(',')
}

const isPadded = ({ width, low }: Run): boolean => width > 1 && low < 10 ** (width - 1)

/** 10… goes on where …9 stopped, as one more digit is needed; 09… does not. */
const follows = (run: Run, before: Run): boolean =>
  run.width === before.width + 1 && before.high === 10 ** before.width - 1 && run.low === 10 ** before.width
