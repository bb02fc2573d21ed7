import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Sites to measure on, of any size: 40 groups, /16 networks. `rules` says everything in one line per group,
 * `listed` names every node with its MAC address, as sites do that come from another tool.
 */
export type SiteStyle = 'rules' | 'listed'

export const GROUPS = 40

export async function writeBenchSite(dir: string, nodes: number, style: SiteStyle): Promise<void> {
  await Promise.all(['groups', 'files', 'images/compute'].map(folder => mkdir(join(dir, folder), { recursive: true })))
  const width = String(nodes).length
  const name = (index: number): string => `n${String(index).padStart(width, '0')}`
  const perGroup = Math.ceil(nodes / GROUPS)
  await writeFile(
    join(dir, 'site.yaml'),
    `site: bench
domain: bench.cluster
networks:
  prov: { cidr: 10.0.0.0/12, gateway: 10.0.0.1 }
  bmc: { cidr: 10.16.0.0/12 }
defaults:
  boot: { image: compute@stable, root: ram, args: [quiet, "console=ttyS0,115200"] }
  files: { /etc/motd: motd.j2 }
  update: { maxUnavailable: 10%, healthy: 3m }
`,
  )
  for (let group = 0; group < GROUPS; group++) {
    await writeFile(
      join(dir, `groups/rack${group}.yaml`),
      `boot: { args+: [rack=${group}] }\nvars: { row: ${group % 8}, cooling: water }\nlocation: { rack: r${group}, switch: sw${group} }\n`,
    )
  }
  await writeFile(join(dir, 'files/motd.j2'), 'Welcome to {{ name }}\n')
  await writeFile(join(dir, 'images/compute/image.yaml'), 'from: { debian: bookworm }\n')
  const shared = `  interfaces: { prov: { address: "{{ '10.0.1.0' | ip_add(index) }}" } }
  bmc: { driver: redfish, address: "{{ '10.16.1.0' | ip_add(index) }}", username: admin }
  location: { port: "{{ index }}" }
`
  const lines: string[] = []
  for (let group = 0; group < GROUPS; group++) {
    const [first, last] = [group * perGroup + 1, Math.min(nodes, (group + 1) * perGroup)]
    if (first > last) break
    const range = first === last ? name(first) : `n[${name(first).slice(1)}-${name(last).slice(1)}]`
    lines.push(`${range}:\n  groups: [rack${group}]\n${shared}`)
  }
  if (style === 'listed') {
    for (let index = 1; index <= nodes; index++) {
      const mac = [24, 16, 8, 0].map(shift => ((index >> shift) & 255).toString(16).padStart(2, '0')).join(':')
      lines.push(`${name(index)}:\n  interfaces:\n    prov: { mac: "52:54:${mac}" }\n`)
    }
  }
  await writeFile(join(dir, 'nodes.yaml'), lines.join(''))
}
