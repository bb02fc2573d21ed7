/**
 * Writes values the way people write site files: words plain, small lists in brackets, maps as indented lines, strings
 * of several lines as `|` blocks. What another YAML reader could take for something else (`yes`, `12:30`) is quoted.
 */
import { plainValue } from './plain.ts'
import type { ListTree, MapTree, Scalar, ScalarTree, Tree } from './tree.ts'

/** What goes on the line of the key or dash, and the lines below it; an empty head means that all is below. */
export interface Written {
  readonly head: string
  readonly lines: readonly string[]
}

export interface WriteOptions {
  /** Indentation of the key or dash the value belongs to. */
  readonly column: number
  /** Spaces for each level of indentation. */
  readonly step: number
  /** What stood there before, whose style is kept. */
  readonly style?: 'flow' | 'block'
  /** Indentation of the dashes of a list; some people put them right below the key. */
  readonly dashColumn?: number
  readonly quote?: Quote
}

export type Quote = '"' | "'"

export const isQuote = (text: string): text is Quote => text === '"' || text === "'"

const LONGEST_FLOW = 80

export function writeValue(tree: Tree, options: WriteOptions): Written {
  if (tree.kind === 'scalar') return writeScalar(tree, options)
  const size = tree.kind === 'map' ? tree.entries.size : tree.items.length
  if (size === 0 || options.style === 'flow') return { head: writeFlow(tree), lines: [] }
  if (tree.kind === 'map') return { head: '', lines: writeMapLines(tree, options.column + options.step, options.step) }
  if (options.style !== 'block' && isShort(tree)) return { head: writeFlow(tree), lines: [] }
  return { head: '', lines: writeListLines(tree, options.dashColumn ?? options.column + options.step, options.step) }
}

export function writeEntry(key: string, value: Tree, column: number, step: number): string[] {
  const { head, lines } = writeValue(value, { column, step })
  return [`${' '.repeat(column)}${writeKey(key)}:${head === '' ? '' : ' '}${head}`, ...lines]
}

function writeMapLines(map: MapTree, column: number, step: number): string[] {
  return [...map.entries].flatMap(([key, { value }]) => writeEntry(key, value, column, step))
}

function writeListLines(list: ListTree, column: number, step: number): string[] {
  const dash = `${' '.repeat(column)}- `
  return list.items.flatMap(item => {
    // Two columns for the dash and its space: what follows stands below what is beside it.
    const { head, lines } = writeValue(item, { column, step: 2 })
    if (head !== '') return [dash + head, ...lines]
    const nested = item.kind === 'map' ? writeMapLines(item, dash.length, step) : lines
    return [dash + (nested[0] ?? '').slice(dash.length), ...nested.slice(1)]
  })
}

const isShort = (list: ListTree): boolean =>
  list.items.every(item => item.kind === 'scalar' && !isLiteral(item.value)) && writeFlow(list).length <= LONGEST_FLOW

function writeScalar(scalar: ScalarTree, options: WriteOptions): Written {
  const tag = scalar.tag === undefined ? '' : `${scalar.tag} `
  if (!isLiteral(scalar.value))
    return { head: tag + writeInline(scalar.value, isPlainInBlock, options.quote), lines: [] }
  const margin = ' '.repeat(options.column + options.step)
  const clipped = scalar.value.endsWith('\n')
  const lines = (clipped ? scalar.value.slice(0, -1) : scalar.value).split('\n')
  return { head: `${tag}${clipped ? '|' : '|-'}`, lines: lines.map(line => (line === '' ? '' : margin + line)) }
}

/** Several lines that a `|` block holds without further marks: no blank lines at its ends, none of spaces only. */
const isLiteral = (value: Scalar): value is string =>
  typeof value === 'string' &&
  value.includes('\n') &&
  /^\S/.test(value) &&
  !/\n\n$|\n[ \t]+(?:\n|$)/.test(value) &&
  !NEEDS_ESCAPE.test(value)

/** On one line, whatever it is; inside brackets nothing else is possible. */
export function writeFlow(tree: Tree, quote?: Quote): string {
  if (tree.kind === 'scalar')
    return (tree.tag === undefined ? '' : `${tree.tag} `) + writeInline(tree.value, isPlainInFlow, quote)
  if (tree.kind === 'list') return `[${tree.items.map(item => writeFlow(item)).join(', ')}]`
  const entries = [...tree.entries].map(([key, { value }]) => writeFlowEntry(key, value))
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}

export const writeFlowEntry = (key: string, value: Tree): string => `${writeFlowKey(key)}: ${writeFlow(value)}`

export const writeKey = (key: string): string => (isPlainInBlock(key) && isPlainKey(key) ? key : doubleQuoted(key))

export const writeFlowKey = (key: string): string => (isPlainInFlow(key) && isPlainKey(key) ? key : doubleQuoted(key))

/** Keys are strings by their text, so `001` needs no quotes; `true` gets them for other readers' sake. */
const isPlainKey = (key: string): boolean => isPlainString(key) || /^[0-9]+$/.test(key)

function writeInline(value: Scalar, isPlain: (text: string) => boolean, quote: Quote | undefined): string {
  if (typeof value === 'number') return writeNumber(value)
  if (typeof value !== 'string') return String(value)
  if (quote === "'" && !NEEDS_ESCAPE.test(value) && !value.includes('\n')) return `'${value.replaceAll("'", "''")}'`
  return quote === undefined && isPlain(value) && isPlainString(value) ? value : doubleQuoted(value)
}

function writeNumber(value: number): string {
  if (Number.isNaN(value)) return '.nan'
  if (!Number.isFinite(value)) return value < 0 ? '-.inf' : '.inf'
  return Object.is(value, -0) ? '-0' : String(value)
}

/** Whether the text may stand without quotes where no bracket is open. */
const isPlainInBlock = (text: string): boolean =>
  /^(?:[\p{L}\p{N}_/$+(=^~]|[-.][\p{L}\p{N}_])/u.test(text) &&
  !/: |:$| #|\s$/.test(text) &&
  !/[\n\t]/.test(text) &&
  !NEEDS_ESCAPE.test(text)

const isPlainInFlow = (text: string): boolean => isPlainInBlock(text) && !/[,[\]{}]/.test(text)

/** Whether plain text is a string, also for readers of YAML 1.1: not `on`, not `2024-01-31`, not `52:54:00` (base 60). */
const isPlainString = (text: string): boolean =>
  plainValue(text) === text &&
  !/^(?:yes|no|on|off|=|<<)$/i.test(text) &&
  !/^[-+]?[0-9][0-9_,]*$/.test(text) &&
  !/^[0-9a-fA-F]*[0-9:][0-9a-fA-F]*:/.test(text) &&
  !/^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}/.test(text)

// oxlint-disable-next-line no-control-regex
const NEEDS_ESCAPE = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u2028\u2029\uFEFF\p{Cs}]/u

/** JSON is YAML; only what JSON leaves as it is and YAML readers stumble over is escaped too. */
function doubleQuoted(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007F-\u009F\u2028\u2029\uFEFF]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
