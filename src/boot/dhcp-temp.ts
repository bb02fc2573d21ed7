import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { makeDirectory } from '../lib/dirs.ts'
import { type Program, startProgram } from '../lib/program.ts'
import type { AddressService, DhcpSighting } from './dhcp/desired.ts'

export async function startDnsmasq(options: {
  dir: string
  logger: Logger
  onSighting: (s: DhcpSighting) => void
  external?: boolean
}): Promise<AddressService> {
  const { dir } = options
  await makeDirectory(join(dir, 'tftp'), 0o755)
  for (const f of ['undionly.kpxe', 'snponly.efi', 'ipxe.efi'])
    await copyFile(`/usr/lib/ipxe/${f}`, join(dir, 'tftp', f))
  let program: Program | undefined
  let vendor = new Map<string, string>()
  return {
    async apply(d) {
      await program?.stop()
      await writeFile(join(dir, 'tftp', 'autoexec.ipxe'), d.autoexec)
      const own = d.own[0]
      const lines = [
        'no-ping',
        'dhcp-authoritative',
        'log-dhcp',
        'no-resolv',
        'no-hosts',
        'enable-tftp',
        `tftp-root=${join(dir, 'tftp')}`,
        `dhcp-leasefile=${join(dir, 'leases')}`,
        'dhcp-ignore-clid',
        'bind-dynamic',
        `listen-address=${own}`,
        'dhcp-option-force=encap:175,176,1b',
        'enable-ra',
        'dhcp-range=fd00:77::,ra-only',
        ...d.networks.flatMap(n => [
          `dhcp-range=set:${n.name},${n.cidr.split('/')[0]},static,255.255.0.0,1h`,
          ...(n.unknown
            ? [`dhcp-range=${n.unknown.replace(/0\/24/, '10')},${n.unknown.replace(/0\/24/, '250')},255.255.0.0,2m`]
            : []),
        ]),
        'dhcp-userclass=set:ipxe,iPXE',
        'dhcp-match=set:efi,option:client-arch,7',
        'dhcp-match=set:efi,option:client-arch,9',
        `dhcp-boot=tag:ipxe,http://${own}:${d.httpPort}/boot.ipxe`,
        `dhcp-boot=tag:!ipxe,tag:efi,snponly.efi`,
        `dhcp-boot=tag:!ipxe,tag:!efi,undionly.kpxe`,
        ...d.hosts.flatMap(h => h.macs.map(m => `dhcp-host=${m},${h.address},${h.name}`)),
      ]
      await writeFile(join(dir, 'c.conf'), lines.join('\n') + '\n')
      program = await startProgram(
        'dnsmasq',
        ['-C', join(dir, 'c.conf'), '--keep-in-foreground', '--log-facility=-', '--user=root'],
        {
          onLine: line => {
            options.logger.debug({ line }, 'dnsmasq')
            const m = /(\d+) vendor class: (.*)$/.exec(line)
            if (m) vendor.set(m[1] ?? '', m[2] ?? '')
            const x = /dnsmasq-dhcp\S* (\d+) DHCPDISCOVER\(\S+\) (?:\S+ )?([0-9a-f:]{17})/.exec(line)
            if (x) options.onSighting({ mac: x[2] ?? '', kind: 'discover', isFirmware: true, at: new Date() })
          },
        },
      )
    },
    async [Symbol.asyncDispose]() {
      await program?.stop()
    },
  }
}
