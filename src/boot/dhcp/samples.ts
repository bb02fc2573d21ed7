import type { DhcpDesired, DhcpHost } from './desired.ts'

/** A small site, for tests. */
export const sampleHost = (number: number, change: Partial<DhcpHost> = {}): DhcpHost => ({
  name: `n${String(number).padStart(3, '0')}`,
  domain: 'cluster.example',
  network: 'prov',
  macs: [`52:54:00:00:00:${number.toString(16).padStart(2, '0')}`],
  address: `10.77.1.${number}`,
  boots: true,
  primary: true,
  ...change,
})

export const sample = (change: Partial<DhcpDesired> = {}): DhcpDesired => ({
  servers: ['10.77.0.1'],
  own: ['10.77.0.1'],
  httpPort: 7180,
  domain: 'cluster.example',
  networks: [{ name: 'prov', cidr: '10.77.0.0/16', unknown: '10.77.250.0/24' }],
  hosts: [sampleHost(1)],
  forwarders: [],
  discover: true,
  mode: 'server',
  autoexec: '#!ipxe\necho hello\n',
  loaders: {},
  ...change,
})
