/**
 * Edits YAML as a careful person would: only the lines in question change; comments, order, quotes and spaces elsewhere
 * stay as they are. The file is cut at the keys of its outermost map and only the touched pieces are worked on, so an
 * edit in a file of 20,000 nodes costs little more than reading it. Every piece is read again and compared with what
 * the edit should mean before anything is returned: an edit never damages a file.
 */
import { MusterError } from '../errors.ts'
import { type Change, changed, changesOf, EMPTY_MAP, sameTree, type YamlEdit } from './changes.ts'
import { readYaml } from './read.ts'
import { rewrite } from './rewrite.ts'
import { splice } from './splice.ts'
import type { MapTree, Tree } from './tree.ts'

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

interface Piece {
  text: string
  tree: Tree | undefined
}

/** A file cut before each key of its outermost map. What is before the first one is never touched. */
class Pieces {
  readonly #step: number
  readonly #head: string
  readonly #pieces: Piece[] = []
  readonly #byKey = new Map<string, Piece>()

  constructor(text: string, tree: MapTree | undefined, step: number) {
    this.#step = step
    const entries = [...(tree?.entries ?? [])]
    const starts = offsetsOfLines(
      text,
      entries.map(([, { line }]) => line),
    )
    this.#head = text.slice(0, starts[0])
    for (const [i, [key]] of entries.entries()) {
      const piece = { text: text.slice(starts[i], starts[i + 1]), tree: undefined }
      this.#pieces.push(piece)
      this.#byKey.set(key, piece)
    }
  }

  edit(edit: YamlEdit): void {
    const key = edit.path[0] ?? ''
    const piece = this.#byKey.get(key) ?? { text: '', tree: undefined }
    const isWhole = edit.path.length === 1
    if (edit.op === 'rename' && isWhole && edit.to !== key && this.#byKey.has(edit.to))
      throw new MusterError('EDIT_INVALID', `there is a ${edit.to} already`)
    piece.tree ??= readTree(piece.text)
    editPiece(piece, edit, this.#step)

    if (edit.op === 'set' && !this.#byKey.has(key)) {
      this.#pieces.push(piece)
      this.#byKey.set(key, piece)
    }
    if (edit.op !== 'set' && isWhole) this.#byKey.delete(key)
    if (edit.op === 'rename' && isWhole) this.#byKey.set(edit.to, piece)
  }

  text(): string {
    const texts = [this.#head, ...this.#pieces.map(({ text }) => text)].filter(text => text !== '')
    return texts.map((text, i) => (i + 1 < texts.length && !text.endsWith('\n') ? `${text}\n` : text)).join('')
  }
}

function editPiece(piece: Piece, edit: YamlEdit, step: number): void {
  for (const change of changesOf(edit, piece.tree)) {
    const after = changed(piece.tree, change)
    if (after !== piece.tree) Object.assign(piece, makeChange(piece, change, after, step))
  }
}

function makeChange({ text, tree }: Piece, change: Change, after: Tree | undefined, step: number): Piece {
  const map = tree?.kind === 'map' ? tree : { ...EMPTY_MAP, line: 1, column: 1 }
  for (const write of [() => splice(text, map, change, step), () => rewrite(text, change, step)]) {
    const result = write()
    if (result === undefined) continue
    const read = readYaml(result)
    if (read.problems.length === 0 && sameTree(read.tree, after)) return { text: result, tree: read.tree }
  }
  throw new MusterError('EDIT_INVALID', `${change.path.join('.')} cannot be changed automatically; change it by hand`)
}

function readTree(text: string): Tree | undefined {
  const { tree, problems } = readYaml(text)
  const [first] = problems
  if (first === undefined) return tree
  const details = problems.map(({ line, column, message }) => `${line}:${column}: ${message}`)
  throw new MusterError('EDIT_INVALID', `the file is not valid YAML: ${details[0]}`, { details })
}

/** Whether each key of the file starts a line, and each piece means alone what it means in the file. */
function canCut(text: string, tree: Tree | undefined): tree is MapTree | undefined {
  // Directives apply to all that follows; nothing can be added behind the end of the document.
  if (/^(?:%|\.\.\.)/m.test(text)) return false
  if (tree === undefined) return true
  if (tree.kind !== 'map' || tree.entries.size === 0) return false
  const entries = [...tree.entries.values()]
  return (
    entries.every(({ column }, i) => column === 1 && entries[i]?.line !== entries[i + 1]?.line) && !isFlow(text, tree)
  )
}

/** Offsets of the starts of lines, which are given in ascending order from 1. */
function offsetsOfLines(text: string, lines: readonly number[]): number[] {
  let line = 1
  let at = 0
  return lines.map(wanted => {
    for (; line < wanted; line++) at = text.indexOf('\n', at) + 1
    return at
  })
}

const isFlow = (text: string, { line, column }: MapTree): boolean =>
  text.charAt((offsetsOfLines(text, [line])[0] ?? 0) + column - 1) === '{'

/** How many spaces this file takes for a level. */
function indentStep(tree: Tree | undefined): number {
  if (tree?.kind === 'map')
    for (const { line, column, value } of tree.entries.values())
      if (value.kind === 'map' && value.line > line && value.column > column) return value.column - column
  return 2
}
