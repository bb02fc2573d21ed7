/** What container.sh and systemd-nspawn say about the start of a container (sd_notify(3)). */
export interface Started {
  /** Its first process, as this machine numbers it. */
  readonly pid: number
  /** The directory of its cgroup, as container.sh sees it. */
  readonly cgroup: string
}

const LONGEST = 64 * 1024

/** Datagrams come without anything between them: `X_NSPAWN_LEADER_PID=4711READY=1`. */
export class StartNotices {
  readonly #ready = Promise.withResolvers<Started>()
  #text = ''

  get ready(): Promise<Started> {
    return this.#ready.promise
  }

  hear(chunk: Buffer): void {
    if (this.#text.length > LONGEST) return
    this.#text += chunk.toString('latin1')
    const match = /^CGROUP=(\S+)\n[^]*X_NSPAWN_LEADER_PID=(\d+)[^]*READY=1/.exec(this.#text)
    if (match !== null) this.#ready.resolve({ cgroup: match[1] ?? '', pid: Number(match[2]) })
  }
}
