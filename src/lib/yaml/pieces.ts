import { MusterError } from '../errors.ts'
import { sameTree, type YamlEdit } from './changes.ts'
import { cannotChange, editPiece, type Piece, readTree } from './piece.ts'
import type { MapTree, Tree } from './tree.ts'

/** Lines of the file from one key of its outermost map to the next. What is left of a deleted one is comments. */
interface Section extends Piece {
  isGone: boolean
}

/**
 * A file cut before each key of its outermost map, so that an edit reads, writes and checks only the lines of the keys
 * it touches. What is before the first key is never touched.
 */
export class Pieces {
  readonly #step: number
  readonly #head: string
  readonly #sections: Section[] = []
  readonly #byKey = new Map<string, Section>()

  constructor(text: string, tree: MapTree | undefined, step: number) {
    this.#step = step
    const entries = [...(tree?.entries ?? [])]
    const lines = entries.map(([, { line }]) => line)
    const starts = offsetsOfLines(text, lines)
    this.#head = text.slice(0, starts[0])
    for (const [i, [key]] of entries.entries()) this.#append(key, text.slice(starts[i], starts[i + 1]))
  }

  edit(edit: YamlEdit): void {
    const key = edit.path[0] ?? ''
    const isWhole = edit.path.length === 1
    const section = this.#byKey.get(key)
    if (edit.op === 'rename' && isWhole && edit.to !== key && this.#byKey.has(edit.to))
      throw new MusterError('EDIT_INVALID', `there is a ${edit.to} already`)
    if (section === undefined) {
      const piece: Piece = { text: '', tree: undefined }
      editPiece(piece, edit, this.#step)
      if (piece.text !== '') this.#append(key, piece.text)
      return
    }
    section.tree ??= readTree(section.text)
    editPiece(section, edit, this.#step)
    if (edit.op === 'set' || !isWhole) return
    this.#byKey.delete(key)
    if (edit.op === 'rename') this.#byKey.set(edit.to, section)
    else section.isGone = true
  }

  text(): string {
    this.#separate()
    return joined([this.#head, ...this.#sections.map(({ text }) => text)])
  }

  #append(key: string, text: string): void {
    const section = { text, tree: undefined, isGone: false }
    this.#sections.push(section)
    this.#byKey.set(key, section)
  }

  #separate(): void {
    let last: Section | undefined
    let gone: Section[] = []
    for (const section of this.#sections) {
      if (section.isGone) {
        gone.push(section)
      } else {
        separate(last, gone)
        last = section
        gone = []
      }
    }
    separate(last, gone)
  }
}

/** Comments of deleted keys stay, but must not become part of a text block that ends before them. */
function separate(section: Section | undefined, gone: readonly Section[]): void {
  if (section === undefined || gone.length === 0) return
  const tree = section.tree ?? readTree(section.text)
  const isSeparate = (): boolean => sameTree(readTree(joined([section, ...gone].map(({ text }) => text))), tree)
  if (isSeparate()) return
  for (const left of gone) left.text = left.text.replaceAll(/^[ \t]*\n|^[ \t]+/gm, '')
  if (!isSeparate()) throw cannotChange(tree?.kind === 'map' ? [...tree.entries.keys()] : [])
}

/** Whether each key of the file starts a line, and each piece means alone what it means in the file. */
export function canCut(text: string, tree: Tree | undefined): tree is MapTree | undefined {
  // Directives apply to all that follows; nothing can be added behind the end of the document.
  if (/^(?:%|\.\.\.)/m.test(text)) return false
  if (tree === undefined) return true
  if (tree.kind !== 'map' || tree.entries.size === 0 || isFlow(text, tree)) return false
  return [...tree.entries.values()].every(({ column }) => column === 1)
}

const isFlow = (text: string, { line, column }: MapTree): boolean =>
  text.charAt((offsetsOfLines(text, [line])[0] ?? 0) + column - 1) === '{'

/** Offsets of the starts of lines, which are given in ascending order from 1. */
function offsetsOfLines(text: string, lines: readonly number[]): number[] {
  let line = 1
  let at = 0
  return lines.map(wanted => {
    for (; line < wanted; line++) at = text.indexOf('\n', at) + 1
    return at
  })
}

function joined(texts: readonly string[]): string {
  const present = texts.filter(text => text !== '')
  return present.map((text, i) => (i + 1 < present.length && !text.endsWith('\n') ? `${text}\n` : text)).join('')
}
