import { MusterError } from '../errors.ts'
import { type Change, changed, changesOf, EMPTY_MAP, sameTree, type YamlEdit } from './changes.ts'
import { readYaml } from './read.ts'
import { rewrite } from './rewrite.ts'
import { splice } from './splice.ts'
import type { Tree } from './tree.ts'

/** A text, a whole file or some lines of it, and what it means. */
export interface Piece {
  text: string
  tree: Tree | undefined
}

export function editPiece(piece: Piece, edit: YamlEdit, step: number): void {
  for (const change of changesOf(edit, piece.tree)) {
    const after = changed(piece.tree, change)
    if (after !== piece.tree) Object.assign(piece, makeChange(piece, change, after, step))
  }
}

/** Nothing is taken on trust: what was written is read again and must mean what the change should. */
function makeChange({ text, tree }: Piece, change: Change, after: Tree | undefined, step: number): Piece {
  const map = tree?.kind === 'map' ? tree : { ...EMPTY_MAP, line: 1, column: 1 }
  for (const write of [() => splice(text, map, change, step), () => rewrite(text, change, step)]) {
    const result = write()
    if (result === undefined) continue
    const read = readYaml(result)
    if (read.problems.length === 0 && sameTree(read.tree, after)) return { text: result, tree: read.tree }
  }
  throw cannotChange(change.path)
}

export const cannotChange = (path: readonly string[]): MusterError =>
  new MusterError('EDIT_INVALID', `${path.join('.')} cannot be changed automatically; change it by hand`)

export function readTree(text: string): Tree | undefined {
  const { tree, problems } = readYaml(text)
  const [first] = problems
  if (first === undefined) return tree
  const details = problems.map(({ line, column, message }) => `${line}:${column}: ${message}`)
  throw new MusterError('EDIT_INVALID', `the file is not valid YAML: ${details[0]}`, { details })
}
