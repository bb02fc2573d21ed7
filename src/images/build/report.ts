/** Who is told how a build goes: a terminal, a log, a test. */
export interface BuildReport {
  /** A stage of an image begins, or is there already. */
  begin(image: string, title: string): void
  output(chunk: Buffer): void
  /** What it is doing now, where no program prints it. */
  note(line: string): void
  end(how: 'made' | 'cached' | 'failed'): void
}
