/** With `sh -x` a script shows each command before it runs it: the last one shown is the one that failed. */
export class ShownCommands {
  last: string | undefined
  #line = ''

  /** Output comes in pieces that need not end where lines do. */
  add(chunk: Buffer): void {
    const lines = (this.#line + chunk.toString('utf8')).split('\n')
    this.#line = (lines.pop() ?? '').slice(0, MAX_LINE)
    const shown = lines.findLast(line => /^\++ ./.test(line))
    if (shown !== undefined) this.last = shown.replace(/^\++ /, '')
  }
}

const MAX_LINE = 65_536
