export type TestPlace = 'root' | 'container' | 'vm'

/** How checks see the system: the one primitive, the same for a plain tree, a container and a machine. */
export interface Subject {
  readonly place: TestPlace
  /**
   * Runs a command inside, as root, no shell unless argv asks for one. Never throws for an exit code: what is not there
   * gives 127, a time-out 124.
   */
  run(argv: readonly string[], options?: SubjectOptions): Promise<SubjectResult>
}

export interface SubjectOptions {
  readonly input?: string | Buffer
  /** Milliseconds; 10,000 unless said. */
  readonly timeout?: number
  /** Besides PATH, HOME, LANG and TERM, which are always the same. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Bytes of each stream that are kept; a MiB unless said. The rest is read, and forgotten. */
  readonly keep?: number
}

export interface SubjectResult {
  readonly exitCode: number
  readonly stdout: Buffer
  readonly stderr: Buffer
}

export interface OpenSubject extends Subject, AsyncDisposable {}

/** Where the folder of an image's tests lies inside. */
export const TESTS_INSIDE = '/run/muster-tests'

export const TIMED_OUT = 124
