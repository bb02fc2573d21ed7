import { styleText } from 'node:util'
import type { GlobalOptions, Io } from './io.ts'

type Style = Parameters<typeof styleText>[0]

/** How commands speak: tables and lines for people, the whole value as JSON or YAML for programs. */
export class Output {
  readonly #io: Io
  readonly #format: GlobalOptions['output']

  constructor(io: Io, format: GlobalOptions['output']) {
    this.#io = io
    this.#format = format
  }

  /** The result of a command: `value` for programs, `lines` for people. */
  async result(value: unknown, lines: () => readonly string[]): Promise<void> {
    if (this.#format === 'json') this.line(JSON.stringify(value, null, 2))
    else if (this.#format === 'yaml')
      this.#io.stdout.write((await import('yaml')).stringify(value, { lineWidth: 0, aliasDuplicateObjects: false }))
    else for (const line of lines()) this.line(line)
  }

  get isForPeople(): boolean {
    return this.#format === 'table'
  }

  line(text: string): void {
    this.#io.stdout.write(`${text}\n`)
  }

  /** Something for the person at the terminal that is no part of the result. */
  note(text: string): void {
    this.#io.stderr.write(`${text}\n`)
  }

  style(style: Style, text: string): string {
    return hasColour(this.#io) ? styleText(style, text, { validateStream: false }) : text
  }
}

const hasColour = ({ env, stdout }: Io): boolean =>
  stdout.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'

/** Aligned columns; the last one may be as long as it likes. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [header, ...rows]
  const widths = header.map((_, column) => all.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0))
  return all.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd(),
  )
}

/** 45s, 12m, 3h, 5d: for people; programs get the exact time. */
export function ago(time: string, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - new Date(time).getTime()) / 1000))
  if (seconds < 90) return `${seconds}s`
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)}m`
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)}h`
  return `${Math.round(seconds / 86_400)}d`
}

/** 0.4 s, 12.3 s, 2 min 5 s */
export function duration(seconds: number): string {
  // 99.95 would be shown as 100.0.
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)} min ${whole % 60} s`
}

export const plural = (count: number, word: string): string =>
  `${count.toLocaleString('en-US')} ${word}${count === 1 ? '' : 's'}`
