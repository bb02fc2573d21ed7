/** What a program printed or a file holds: read by lines where patterns are asked for, as a whole otherwise. */
export class Output {
  readonly text: string
  /** There was more than a check looks at. */
  readonly cut: boolean

  constructor(bytes: Buffer | string) {
    const buffer = Buffer.from(bytes)
    this.cut = buffer.length >= MOST_BYTES
    this.text = buffer.subarray(0, MOST_BYTES).toString('utf8')
  }

  /** Without an empty one at the end, which is only the end of the last. */
  get lines(): string[] {
    return linesOf(this.text)
  }
}

/** As much as subjects keep; expressions run over no more. */
const MOST_BYTES = 2 ** 20

/** What could not be found out, and why: never what was hoped for. */
export class Unknown {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

export function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}
