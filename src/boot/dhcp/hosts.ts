import { MusterError } from '../../lib/errors.ts'
import { isAddress } from '../../lib/ip.ts'
import type { DhcpDesired, DhcpHost } from './desired.ts'
import { dnsName, macAddress } from './words.ts'

/** Tag of machines that get an address and nothing to boot. */
export const NO_BOOT = 'no-boot'

/**
 * One line for each reservation, as dnsmasq's dhcp-hostsfile has them: 52:54:00:00:00:01,10.77.1.1
 *
 * They are kept short on purpose: for each of its lines dnsmasq walks over all others. A machine that we boot finds its
 * name on its kernel's command line; only others are told it here.
 *
 * A dnsmasq that has answered a client whose line sets a tag may not be told to read the lines anew (SIGHUP): in 2.90
 * it frees memory that is not its own then, and crashes.
 */
export function reservationLines({ hosts, networks, mode }: DhcpDesired): string[] {
  const served = new Set(networks.map(({ name }) => name))
  const seen = new Map<string, string>()
  return hosts
    .filter(host => host.macs.length > 0 && served.has(host.network) && !host.address.includes(':'))
    .map(host => {
      const macs = host.macs.map(mac => macAddress(mac, host.name))
      claim(seen, host, [checkedAddress(host), ...macs.map(mac => `${mac} in ${host.network}`)])
      return [
        ...macs,
        ...(host.boots ? [] : [`set:${NO_BOOT}`]),
        ...(mode === 'server' ? [host.address] : []),
        ...(host.boots || !host.primary ? [] : [dnsName(host.name, host.name)]),
      ].join(',')
    })
}

/** dnsmasq would silently take the first and forget the others. */
function claim(seen: Map<string, string>, host: DhcpHost, keys: readonly string[]): void {
  for (const key of keys) {
    const other = seen.get(key)
    if (other !== undefined) throw new MusterError('SITE_INVALID', `${key} belongs to both ${other} and ${host.name}`)
    seen.set(key, host.name)
  }
}

function checkedAddress({ name, address }: DhcpHost): string {
  if (isAddress(address)) return address
  throw new MusterError('SITE_INVALID', `${name}: ${JSON.stringify(address)} is not an address`)
}

/** One line for each address, as in /etc/hosts; its first name is what a reverse query gets. */
export function nameLines({ hosts }: DhcpDesired): string[] {
  return hosts.map(host => {
    const plain = dnsName(host.primary ? host.name : `${host.name}-${host.network}`, host.name)
    const full = host.domain === '' ? [] : [`${plain}.${dnsName(host.domain, host.name)}`]
    return [checkedAddress(host), ...full, plain].join(' ')
  })
}
