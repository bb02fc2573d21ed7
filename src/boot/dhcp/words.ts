import { MusterError } from '../../lib/errors.ts'

/**
 * What goes into a line of dnsmasq's. The values have been checked where they came in; here only what would make
 * another line, argument, tag or comment of it is turned away.
 */
export function word(value: string | number, what: string): string {
  const text = String(value)
  if (/^[\x21-\x7e]+$/.test(text) && !/[,#"\\]/.test(text)) return text
  throw new MusterError('SITE_INVALID', `${what}: ${JSON.stringify(text)} cannot be written into a configuration`)
}

/** A name of DNS, or a part of one. */
export function dnsName(value: string, what: string): string {
  if (/^[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?$/i.test(value) && !value.includes('..')) return value.toLowerCase()
  throw new MusterError('SITE_INVALID', `${what}: ${JSON.stringify(value)} is not a name for DNS`)
}

const MAC = /^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$/

export function macAddress(value: string, what: string): string {
  const mac = value.toLowerCase()
  if (MAC.test(mac)) return mac
  throw new MusterError('SITE_INVALID', `${what}: ${JSON.stringify(value)} is not a MAC address`)
}
