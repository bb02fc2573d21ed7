/**
 * A tree written out as names, in natural order: the pattern 'r#n#' with r[1-2]n[08-09] → r1n08, r1n09, r2n08, r2n09.
 */
import { digitsOf, runsOf } from './digits.ts'
import { hole } from './name.ts'
import { end, type Tree } from './tree.ts'

/** The names are appended to `names`. */
export function expand(pattern: string, tree: Tree, names: string[]): void {
  const [text = '', ...texts] = pattern.split(hole)
  walk(text, tree, texts, 0, names)
}

function walk(before: string, tree: Tree, texts: readonly string[], depth: number, names: string[]): void {
  if (tree === end) {
    names.push(before)
    return
  }
  const after = texts[depth] ?? ''
  for (const branch of tree) {
    for (const { width, low, high } of runsOf(branch)) {
      for (let value = low; value <= high; value++) {
        walk(before + digitsOf(width, value) + after, branch.rest, texts, depth + 1, names)
      }
    }
  }
}
