import type { Loaders } from '../loaders.ts'

export interface DhcpNetwork {
  readonly name: string
  readonly cidr: string
  readonly gateway?: string
  /** The part of it from which strangers get an address. */
  readonly unknown?: string
  readonly domain?: string
  readonly vlan?: number
}

export interface DhcpHost {
  readonly name: string
  readonly domain: string
  readonly network: string
  /** None yet known: it has a name, but nothing is given out. */
  readonly macs: readonly string[]
  readonly address: string
  /** False: an address and no boot file, whatever its firmware asks for. */
  readonly boots: boolean
  /** Its plain name resolves to this address; elsewhere it is NAME-NETWORK. */
  readonly primary: boolean
}

/** Everything the service that gives out addresses, loaders and names is to know. */
export interface DhcpDesired {
  /** IPv4 addresses of all boot servers, in order. */
  readonly servers: readonly string[]
  /** Those of this machine: where to listen. */
  readonly own: readonly string[]
  readonly httpPort: number
  readonly domain: string
  readonly networks: readonly DhcpNetwork[]
  readonly hosts: readonly DhcpHost[]
  /** Who is asked for names that are not ours. */
  readonly forwarders: readonly string[]
  /** Answer strangers. */
  readonly discover: boolean
  /** Proxy: beside a DHCP server of the site's, which gives out the addresses. */
  readonly mode: 'server' | 'proxy'
  /** The text of autoexec.ipxe. */
  readonly autoexec: string
  readonly loaders: Loaders
  /** Advertise an IPv6 prefix on networks of ours, without which iPXE waits seconds for one; so unless false. */
  readonly advertise?: boolean
}

/** A DHCP packet that came or went. */
export interface DhcpSighting {
  readonly mac: string
  readonly kind: 'discover' | 'offer' | 'request' | 'ack' | 'nak'
  readonly address?: string
  readonly vendor?: string
  readonly arch?: number
  readonly userClass?: string
  /** A machine that boots (PXE, HTTP boot or iPXE), not an operating system that renews. */
  readonly isFirmware: boolean
  readonly at: Date
}

export interface DaemonState {
  readonly name: string
  readonly running: boolean
  readonly pid?: number
  /** How often it had to be started again because it had died. */
  readonly restarts: number
  readonly lastError?: string
}

/** What stands behind it may be dnsmasq today, Kea tomorrow. */
export interface AddressService extends AsyncDisposable {
  /**
   * Resolves when clients are answered from it. What is wrong with it is thrown, and all stays as it was. One that has
   * been overtaken by a newer one before its turn has no effect of its own.
   */
  apply(desired: DhcpDesired): Promise<void>
  readonly state: readonly DaemonState[]
}
