import type { DaemonState } from './desired.ts'

/** One dnsmasq, whoever runs it. */
export interface Daemon extends AsyncDisposable {
  readonly state: DaemonState
  /**
   * From now on one serves that has read the configuration and lists as they are now; resolves when it has read `file`.
   */
  renew(file: string): Promise<void>
  /** It reads its lists anew; resolves when it has read `file`. */
  reload(file: string): Promise<void>
  /** Places a file that it finds by itself; resolves when it has read it. */
  notices(file: string, place: () => Promise<void>): Promise<void>
}

/** The file that a line says has been read: `dnsmasq-dhcp[7]: read /var/lib/muster/dnsmasq/reservations`. */
export function fileRead(line: string): string | undefined {
  return /^dnsmasq(?:-dhcp)?\[\d{1,10}\]: read (\S{1,1000})(?: - \d+ names)?$/.exec(line)?.[1]
}

/** What somebody who looks after it should know. */
export const isComplaint = (line: string): boolean =>
  /^dnsmasq(?:-dhcp|-tftp)?\[\d{1,10}\]: (?!\d+ ).*(?: at line \d+ of |failed|FAILED|cannot|warning: )/.test(line) &&
  // It looks again for files that it noticed were taken away; and names may well end with us.
  !/: cannot read \S+\/added\/\d+: No such file or directory$|: warning: no upstream servers configured$/.test(line)
