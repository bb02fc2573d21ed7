import { describe, expect, it } from 'vitest'
import { decideFor } from '../../boot/decide.ts'
import { type BootContext, firstScript, machineScript } from '../../boot/ipxe.ts'
import { MAC, STRANGER, boots, hex, indexOf, prov } from '../../boot/testing.ts'
import type { BootNode } from '../../boot/view.ts'
import { type LoadedScript, readScript } from './script.ts'

const CONTEXT: BootContext = { urls: ['http://10.77.0.1:7180'], boot: '0123456789abcdef', mac: MAC, shell: false }

/** What a simulated loader makes of the script that n1 gets. */
const read = (more: Partial<BootNode>): LoadedScript | undefined => {
  const index = indexOf({ nodes: [boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC })], ...more })] })
  return readScript(machineScript(decideFor(index, MAC), CONTEXT))
}

describe('a simulated loader', () => {
  it('finds in a script what a real one would fetch, and what the kernel is told', () => {
    const script = read({ args: ['console=ttyS0,115200', 'quiet'] })
    expect([script?.kernel, script?.initrds]).toEqual([`/blob/${hex('1')}`, [`/blob/${hex('2')}`]])
    expect(Object.fromEntries(script?.args ?? [])).toEqual({
      initrd: 'initrd',
      'muster.root': 'squashfs',
      'muster.sha256': hex('3'),
      'muster.size': '300000000',
      'muster.overlay': '50%',
      'muster.kernel': '6.1.0-30-amd64',
      'muster.node': 'n1',
      'muster.boot': '0123456789abcdef',
      'muster.mac': MAC,
      'muster.servers': 'http://10.77.0.1:7180',
      'muster.image': `sha256:${hex('a')}`,
      'systemd.hostname': 'n1',
      console: 'ttyS0,115200',
      quiet: '',
    })
  })

  it('finds the one archive of a whole cpio', () => {
    const script = read({ form: 'cpio' })
    expect(script?.initrds).toEqual([`/blob/${hex('4')}`])
    expect(script?.args.has('muster.sha256')).toBe(false)
  })

  it('finds both archives of the discovery system', () => {
    const context = { ...CONTEXT, discoveryExtras: hex('9') }
    const script = readScript(machineScript(decideFor(indexOf(), STRANGER), context))
    expect(script?.initrds).toEqual([`/blob/${hex('2')}`, `/blob/${hex('9')}`])
    expect(script?.args.get('muster.mode')).toBe('discover')
  })

  it('finds nothing where there is nothing to boot', () => {
    expect(read({ from: 'disk' })).toBeUndefined()
    expect(read({ image: 'login' })).toBeUndefined()
    expect(readScript(firstScript(CONTEXT))).toBeUndefined()
    expect(readScript('')).toBeUndefined()
    expect(readScript('error: something went wrong here\n')).toBeUndefined()
  })
})
