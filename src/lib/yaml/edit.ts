/**
 * Edits YAML as a careful person would: only the lines in question change; comments, order, quotes and spaces elsewhere
 * stay as they are. The file is cut at the keys of its outermost map and only the touched pieces are worked on, so an
 * edit in a file of 20,000 nodes costs little more than reading it. Every piece is read again and compared with what
 * the edit should mean before anything is returned: an edit never damages a file.
 */
import type { YamlEdit } from './changes.ts'
import { editPiece, type Piece, readTree } from './piece.ts'
import { canCut, Pieces } from './pieces.ts'
import type { Tree } from './tree.ts'

export type { YamlEdit } from './changes.ts'

/** The text after the edits, made one after the other. Throws EDIT_INVALID, and then nothing is changed. */
export function editYaml(text: string, edits: readonly YamlEdit[]): string {
  const bom = text.startsWith('\uFEFF') ? '\uFEFF' : ''
  const body = text.slice(bom.length)
  const isWindows = body.includes('\r\n') && !/(?<!\r)\n/.test(body)
  const result = editLines(isWindows ? body.replaceAll('\r\n', '\n') : body, edits)
  return bom + (isWindows ? result.replaceAll('\n', '\r\n') : result)
}

function editLines(text: string, edits: readonly YamlEdit[]): string {
  const tree = readTree(text)
  const step = indentStep(tree)
  if (canCut(text, tree)) {
    const pieces = new Pieces(text, tree, step)
    for (const edit of edits) pieces.edit(edit)
    return pieces.text()
  }
  const whole: Piece = { text, tree }
  for (const edit of edits) editPiece(whole, edit, step)
  return whole.text
}

/** How many spaces this file takes for a level. */
function indentStep(tree: Tree | undefined): number {
  if (tree?.kind === 'map')
    for (const { line, column, value } of tree.entries.values())
      if (value.kind === 'map' && value.line > line && value.column > column) return value.column - column
  return 2
}
