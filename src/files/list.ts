import { hash } from 'node:crypto'
import type { PlannedContent, PlannedFile, When } from '../site/file-plan.ts'

/**
 * The files of a node as it reads them, in a shell: one line each, columns between tabs, in order of path.
 *
 *     muster-files 1
 *     run  1     systemctl reload chrony
 *     file live  0644  root  root  SHA256  SIZE  1  /etc/chrony/chrony.conf
 *     link boot  -     -     -     -       -     -  /etc/localtime  /usr/share/zoneinfo/UTC
 *     end
 *
 * kind, when, mode, owner, group, digest and size of the content, number of what is run after a change, path, and of a link its
 * target. Nodes with the same files have the same list.
 */
export type ListedFile = Exclude<PlannedFile, PlannedContent> | (PlannedContent & ContentId)

export interface ContentId {
  readonly sha256: string
  readonly size: number
}

const HEAD = 'muster-files 1'
const END = 'end'
const NONE = '-'

/** Of files in order of path. */
export function listText(files: readonly ListedFile[]): string {
  const runs = new Map<string, number>()
  for (const { run } of files) if (run !== undefined && !runs.has(run)) runs.set(run, runs.size + 1)
  let text = `${HEAD}\n`
  for (const [command, number] of runs) text += `run\t${number}\t${command}\n`
  for (const file of files) {
    const owned = 'mode' in file ? `${file.mode}\t${file.owner}\t${file.group}` : `${NONE}\t${NONE}\t${NONE}`
    const content = file.kind === 'file' ? `${file.sha256}\t${file.size}` : `${NONE}\t${NONE}`
    const run = file.run === undefined ? NONE : runs.get(file.run)
    text += `${file.kind}\t${file.when}\t${owned}\t${content}\t${run}\t${file.path}`
    text += file.kind === 'link' ? `\t${file.target}\n` : '\n'
  }
  return `${text}${END}\n`
}

/** What tells two lists apart. */
export const versionOf = (text: string): string => hash('sha256', text, 'hex').slice(0, 16)

/** A line of a list, read again. */
export interface ListLine {
  readonly kind: PlannedFile['kind']
  readonly path: string
  readonly when: When
  readonly mode?: string
  readonly owner?: string
  readonly group?: string
  readonly sha256?: string
  readonly size?: number
  readonly run?: string
  readonly target?: string
}

/** Undefined for what is no list: it may come from a node. */
export function parseList(text: string): ListLine[] | undefined {
  const lines = text.split('\n')
  if (lines[0] !== HEAD || lines.at(-1) !== '' || lines.at(-2) !== END) return undefined
  const runs = new Map<string, string>()
  const found: ListLine[] = []
  for (const line of lines.slice(1, -2)) {
    const columns = line.split('\t')
    const [, number = '', command] = columns
    if (columns[0] === 'run' && columns.length === 3 && command) runs.set(number, command)
    else {
      const file = lineOf(columns, runs)
      if (file === undefined) return undefined
      found.push(file)
    }
  }
  return found
}

const KINDS: Readonly<Record<PlannedFile['kind'], { readonly columns: number; readonly pattern: RegExp }>> = {
  file: { columns: 9, pattern: /^[0-7]{4} \w[\w-]* \w[\w-]* [0-9a-f]{64} \d{1,15}$/ },
  dir: { columns: 9, pattern: /^[0-7]{4} \w[\w-]* \w[\w-]* - -$/ },
  link: { columns: 10, pattern: /^- - - - -$/ },
  absent: { columns: 9, pattern: /^- - - - -$/ },
}

function lineOf(columns: readonly string[], runs: ReadonlyMap<string, string>): ListLine | undefined {
  const [kind = '', when, mode = '', owner = '', group = '', sha256 = '', size, number = '', path = '', target] =
    columns
  const form = Object.hasOwn(KINDS, kind) ? KINDS[kind as ListLine['kind']] : undefined
  const run = runs.get(number)
  if (form === undefined || columns.length !== form.columns || (when !== 'boot' && when !== 'live')) return undefined
  if (!form.pattern.test(columns.slice(2, 7).join(' ')) || !path.startsWith('/')) return undefined
  if (run === undefined && number !== NONE) return undefined
  return {
    kind: kind as ListLine['kind'],
    path,
    when,
    ...(mode !== NONE && { mode, owner, group }),
    ...(sha256 !== NONE && { sha256, size: Number(size) }),
    ...(run !== undefined && { run }),
    ...(target !== undefined && { target }),
  }
}
