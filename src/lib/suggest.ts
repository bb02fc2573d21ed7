/** suggest('imgae', ['image', 'root']) → 'image'; nothing when nothing is near. */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
  // Everything is near a word of one letter.
  const limit = word.length < 2 ? 0 : Math.max(1, Math.floor(word.length / 3))
  let best: string | undefined
  let bestDistance = limit + 1
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/** ' — did you mean image?' or nothing, to be put behind a message. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const found = suggest(word, candidates)
  return found === undefined ? '' : ` — did you mean ${found}?`
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment), or `limit` when there are more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let twoBack: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let cost = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (same ? 0 : 1),
      )
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (swapped && row > 1 && column > 1) cost = Math.min(cost, at(twoBack, column - 2) + 1)
      current.push(cost)
    }
    ;[twoBack, previous] = [previous, current]
  }
  return at(previous, b.length)
}

const at = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY
