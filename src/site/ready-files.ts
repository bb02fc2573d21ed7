import { fileURLToPath } from 'node:url'

/** Files that most nodes need and that come with us: `{ ready: hosts }`. Their templates are node/files/NAME.j2. */
interface ReadyFile {
  readonly about: string
  /** Where it goes, as a rule. */
  readonly path: string
  readonly mode?: string
  /** It is about one interface, which has to be named. */
  readonly isOfInterface?: true
}

export const READY_FILES = {
  hostname: { about: 'the name of the node', path: '/etc/hostname' },
  hosts: { about: 'all nodes with their addresses', path: '/etc/hosts' },
  'resolv.conf': {
    about: 'name servers: vars.dns.servers, or else the boot servers; the domain of the node',
    path: '/etc/resolv.conf',
  },
  networkd: {
    about: 'one interface, for systemd-networkd',
    path: '/etc/systemd/network/10-NAME.network',
    isOfInterface: true,
  },
  networkmanager: {
    about: 'one interface, for NetworkManager',
    path: '/etc/NetworkManager/system-connections/NAME.nmconnection',
    mode: '0600',
    isOfInterface: true,
  },
  ifupdown: { about: 'all interfaces, for ifupdown', path: '/etc/network/interfaces' },
  authorized_keys: {
    about: 'who may log in as that user: vars.ssh.authorizedKeys',
    path: '/root/.ssh/authorized_keys',
    mode: '0600',
  },
  ssh_host_key: {
    about:
      'a host key (ed25519) by the secret vars.ssh.hostKeySecret and the name of the node: the same after every boot',
    path: '/etc/ssh/ssh_host_ed25519_key',
    mode: '0600',
  },
  'ssh_host_key.pub': { about: 'its public half', path: '/etc/ssh/ssh_host_ed25519_key.pub' },
  ssh_known_hosts: { about: 'the public halves of all nodes', path: '/etc/ssh/ssh_known_hosts' },
  chrony: {
    about: 'the time from vars.chrony.servers, or else from the boot servers',
    path: '/etc/chrony/chrony.conf',
  },
  rsyslog: { about: 'the log goes to vars.rsyslog.server, too', path: '/etc/rsyslog.d/50-muster.conf' },
  'munge.key': {
    about: 'the secret vars.munge.key; give it owner and group munge',
    path: '/etc/munge/munge.key',
    mode: '0400',
  },
  'cloud-init-meta-data': { about: 'NoCloud: who the node is', path: '/var/lib/cloud/seed/nocloud/meta-data' },
  'cloud-init-user-data': {
    about: 'NoCloud: host name and vars.ssh.authorizedKeys',
    path: '/var/lib/cloud/seed/nocloud/user-data',
    mode: '0600',
  },
  'cloud-init-network-config': {
    about: 'NoCloud: all interfaces',
    path: '/var/lib/cloud/seed/nocloud/network-config',
  },
} as const satisfies Readonly<Record<string, ReadyFile>>
export type ReadyName = keyof typeof READY_FILES

export const READY_NAMES = Object.keys(READY_FILES) as ReadyName[]
export const readyFile = (name: ReadyName): ReadyFile => READY_FILES[name]

export const readyTemplate = (name: string): string =>
  fileURLToPath(new URL(`../../node/files/${name}.j2`, import.meta.url))
