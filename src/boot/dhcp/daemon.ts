import type { DaemonState } from './desired.ts'

/** One dnsmasq, whoever runs it. */
export interface Daemon extends AsyncDisposable {
  readonly state: DaemonState
  /** From now on it runs with the configuration that is in its file; resolves when it has read `file`. */
  restart(file: string): Promise<void>
  /** Reads its lists anew; resolves when it has read `file`. */
  reload(file: string): Promise<void>
  /** Resolves when it has read `file`, which it finds by itself. */
  notices(file: string, place: () => Promise<void>): Promise<void>
}

/** The file a line says has been read: `dnsmasq-dhcp[7]: read /var/lib/muster/boot/dnsmasq/reservations`. */
export function fileRead(line: string): string | undefined {
  return /^dnsmasq(?:-dhcp)?\[\d{1,10}\]: read (\S{1,1000})(?: - \d+ names)?$/.exec(line)?.[1]
}

/** What somebody who looks after it should know. */
export const isComplaint = (line: string): boolean =>
  /^dnsmasq(?:-dhcp|-tftp)?\[\d{1,10}\]: .*(?: at line \d+ of |failed|FAILED|cannot|warning: |unknown interface)/.test(
    line,
  ) &&
  // It looks for files again that it noticed were taken away.
  !/: cannot read \S+\/added\/\d+: No such file or directory$/.test(line)
