import { describe, expect, it } from 'vitest'
import { Machine, isNews, machineId, machineSeen } from './machines.ts'
import { MachineFacts } from './reports.ts'

const MAC = '52:54:00:aa:bb:cc'
const FIRST = '2026-03-01T12:00:00.000Z'
const LATER = '2026-03-01T12:01:00.000Z'
/** leaf-03, port 17 */
const FRAME = '0180c200000e52540000000188cc0207040011223344550403053137060200780a076c6561662d30330000'

const facts = (more: object = {}): MachineFacts => MachineFacts.parse({ mac: MAC, serial: 'S1', ...more })
const heard = (frame = FRAME) => ({ lldp: [{ interface: 'eth0', frame }] })

describe('a machine that was discovered', () => {
  it('is its MAC', () => {
    expect(machineId(MAC)).toBe('525400aabbcc')
  })

  it('is what it said, with its neighbours instead of their frames', () => {
    const machine = machineSeen(undefined, facts(heard()), FIRST, '10.77.0.1')
    expect(machine).toEqual({
      id: '525400aabbcc',
      mac: MAC,
      facts: { ...facts(), lldp: [] },
      neighbours: [{ interface: 'eth0', switch: 'leaf-03', port: '17' }],
      firstSeen: FIRST,
      lastSeen: FIRST,
      server: '10.77.0.1',
    })
    expect(Machine.parse(JSON.parse(JSON.stringify(machine)))).toEqual(machine)
  })

  it('keeps its neighbours while no switch speaks, and has others when another does', () => {
    const first = machineSeen(undefined, facts(heard()), FIRST, '10.77.0.1')
    const second = machineSeen(first, facts(), LATER, '10.77.0.2')
    expect(second).toEqual({ ...first, lastSeen: LATER, server: '10.77.0.2' })
    const moved = machineSeen(second, facts(heard(FRAME.replace('040305313706', '040305313806'))), LATER, '10.77.0.2')
    expect(moved.neighbours).toEqual([{ interface: 'eth0', switch: 'leaf-03', port: '18' }])
  })

  it('has no neighbour where the frame is rubbish', () => {
    expect(machineSeen(undefined, facts(heard('ffff')), FIRST, '').neighbours).toEqual([])
  })
})

describe('whether a machine says anything new', () => {
  const before = machineSeen(undefined, facts({ boot: 'a'.repeat(16) }), FIRST, '10.77.0.1')
  const again = (more: object, server = '10.77.0.1') => machineSeen(before, facts(more), LATER, server)

  it.for<[what: string, after: Machine, isNew: boolean]>([
    ['the same, later', again({ boot: 'a'.repeat(16) }), false],
    ['the same in another boot', again({ boot: 'b'.repeat(16) }), false],
    ['another serial number', again({ boot: 'a'.repeat(16), serial: 'S2' }), true],
    ['its neighbour', again({ boot: 'a'.repeat(16), ...heard() }), true],
    ['the same to another server', again({ boot: 'a'.repeat(16) }, '10.77.0.2'), true],
  ])('%s', ([, after, isNew]) => {
    expect(isNews(before, after)).toBe(isNew)
  })

  it('always does at first', () => {
    expect(isNews(undefined, before)).toBe(true)
  })

  it('does not after a restart', () => {
    const stored = Machine.parse(JSON.parse(JSON.stringify(before)))
    expect(isNews(stored, machineSeen(stored, facts({ boot: 'a'.repeat(16) }), LATER, '10.77.0.1'))).toBe(false)
  })
})
