/**
 * Makes one change by replacing, inserting or removing just the characters it is about; every other byte stays. It
 * follows the path through maps written as indented lines to the entry in question, and asks the `yaml` package, for
 * the lines of that entry alone, where its key and value begin and end.
 *
 * Gives `undefined` where the text is laid out in a way it does not know. It need not be careful beyond that: `editYaml`
 * reads the result and compares.
 */
import { type Change, isNull, nest } from './changes.ts'
import { type Entry, type Parts, partsOf } from './entry.ts'
import { spliceFlow } from './splice-flow.ts'
import type { MapTree, Place, Tree } from './tree.ts'
import { isQuote, writeEntry, writeKey, writeValue, type WriteOptions } from './write.ts'

/** `step` is the number of spaces for a level of indentation in this file. */
export function splice(text: string, tree: MapTree, change: Change, step: number): string | undefined {
  return new Splicer(text, change, step).splice(tree)
}

class Splicer {
  readonly #text: string
  readonly #change: Change
  readonly #step: number
  readonly #lines: readonly number[]

  constructor(text: string, change: Change, step: number) {
    this.#text = text
    this.#change = change
    this.#step = step
    this.#lines = lineStarts(text)
  }

  splice(tree: MapTree): string | undefined {
    if (!this.#isFlow(tree)) return this.#inMap(tree, this.#text.length, 0)
    if (tree.entries.size === 0) return this.#fillRoot(this.#offsetOf(tree))
    return spliceFlow(this.#text, this.#offsetOf(tree), this.#text.length, this.#change.path, this.#change)
  }

  /** `end` is where the lines of the map end, `parent` the entry it is the value of. */
  #inMap(map: MapTree, end: number, depth: number, parent?: Entry): string | undefined {
    const change = this.#change
    const { path } = change
    const entry = this.#find(map, path[depth], end)
    if (entry === undefined) return change.op === 'set' ? this.#add(map, end, depth, change.value) : undefined
    if (depth + 1 === path.length) return this.#atEntry(map, entry, parent)
    const { value } = entry
    if (value.kind === 'map' && !this.#isFlow(value)) return this.#inMap(value, entry.end, depth + 1, entry)
    const rest = path.slice(depth + 1)
    if (value.kind === 'map' && value.entries.size > 0) {
      const parts = partsOf(this.#text, entry)
      return parts && spliceFlow(this.#text, parts.valueStart, parts.valueEnd, rest, change)
    }
    // Nothing there yet: `key:` or `key: {}`.
    const isFree = value.kind === 'map' || isNull(value)
    return change.op === 'set' && isFree ? this.#replace(entry, nest(rest, change.value)) : undefined
  }

  #atEntry(map: MapTree, entry: Entry, parent: Entry | undefined): string | undefined {
    if (this.#change.op === 'set') return this.#replace(entry, this.#change.value)
    if (this.#change.op === 'rename') return this.#rename(entry, this.#change.to)
    return map.entries.size === 1 && parent !== undefined ? this.#empty(parent, entry) : this.#remove(entry)
  }

  /** Behind the last key of the map; a new key of the whole file goes behind everything, comments included. */
  #add(map: MapTree, end: number, depth: number, value: Tree): string | undefined {
    const lastKey = [...map.entries.keys()].at(-1)
    const last = depth === 0 ? undefined : this.#find(map, lastKey, end)
    const at = last === undefined ? end : partsOf(this.#text, last)?.end
    if (at === undefined) return undefined
    const before = this.#text.slice(0, at)
    const newline = before === '' || before.endsWith('\n') ? '' : '\n'
    return `${before}${newline}${this.#entryText(depth, map.column - 1, value)}\n${this.#text.slice(at)}`
  }

  /** A file that says `{}` gets its first key. */
  #fillRoot(offset: number): string | undefined {
    const braces = /^\{\s*\}/.exec(this.#text.slice(offset))?.[0]
    if (braces === undefined || this.#change.op !== 'set') return undefined
    return (
      this.#text.slice(0, offset) + this.#entryText(0, 0, this.#change.value) + this.#text.slice(offset + braces.length)
    )
  }

  /** The lines of a key that is new at this depth of the path. */
  #entryText(depth: number, column: number, value: Tree): string {
    const { path } = this.#change
    return writeEntry(path[depth] ?? '', nest(path.slice(depth + 1), value), column, this.#step).join('\n')
  }

  #remove(entry: Entry): string | undefined {
    const parts = partsOf(this.#text, entry)
    return parts && this.#text.slice(0, entry.start) + this.#text.slice(parts.end)
  }

  /** The last key of a map goes; comments around it stay below what is then an empty map. */
  #empty(parent: Entry, entry: Entry): string | undefined {
    const colonEnd = partsOf(this.#text, parent)?.colonEnd
    const end = partsOf(this.#text, entry)?.end
    if (colonEnd === undefined || end === undefined) return undefined
    const between = this.#text.slice(colonEnd, entry.start)
    return `${this.#text.slice(0, colonEnd)} {}${between}${this.#text.slice(end)}`
  }

  #rename(entry: Entry, to: string): string | undefined {
    const parts = partsOf(this.#text, entry)
    return parts && this.#text.slice(0, parts.keyStart) + writeKey(to) + this.#text.slice(parts.keyEnd)
  }

  #replace(entry: Entry, value: Tree): string | undefined {
    const parts = partsOf(this.#text, entry)
    if (parts === undefined) return undefined
    const { head, lines } = writeValue(value, {
      column: entry.column,
      step: this.#step,
      ...this.#styleOf(entry, parts, value),
    })
    const keyLine = this.#text.slice(entry.start, parts.colonEnd) + (head === '' ? '' : ` ${head}`) + parts.comment
    return this.#text.slice(0, entry.start) + [keyLine, ...lines, ''].join('\n') + this.#text.slice(parts.end)
  }

  /** A list in brackets stays in brackets, one of lines keeps its indentation, a quoted string its quotes. */
  #styleOf({ value: old }: Entry, parts: Parts, value: Tree): Partial<WriteOptions> {
    if (old.kind === 'scalar') {
      const quote = this.#text.charAt(parts.valueStart)
      return isQuote(quote) ? { quote } : {}
    }
    if (old.kind !== 'list' || value.kind !== 'list' || old.items.length === 0) return {}
    return this.#isFlow(old) ? { style: 'flow' } : { style: 'block', dashColumn: old.column - 1 }
  }

  #find(map: MapTree, key: string | undefined, end: number): Entry | undefined {
    const found = key === undefined ? undefined : map.entries.get(key)
    if (found === undefined) return undefined
    let next = Number.POSITIVE_INFINITY
    for (const { line } of map.entries.values()) if (line > found.line && line < next) next = line
    return {
      start: this.#lines[found.line - 1] ?? 0,
      end: this.#lines[next - 1] ?? end,
      column: found.column - 1,
      value: found.value,
    }
  }

  #isFlow(tree: Tree): boolean {
    return /^[[{]/.test(this.#text.charAt(this.#offsetOf(tree)))
  }

  #offsetOf({ line, column }: Place): number {
    return (this.#lines[line - 1] ?? 0) + column - 1
  }
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}
