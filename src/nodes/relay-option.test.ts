import { describe, expect, it } from 'vitest'
import { placeOfRelay, readRelayOption } from './relay-option.ts'

const hex = (text: string): string => Buffer.from(text).toString('hex')

describe('the bytes of option 82', () => {
  it.for<[what: string, bytes: string, parts: object | undefined]>([
    [
      'circuit and remote id',
      '010600040001000302080006001122334455',
      { circuit: '000400010003', remote: '0006001122334455' },
    ],
    ['only the circuit, as dhcrelay writes it', `0104${hex('eth1')}`, { circuit: hex('eth1') }],
    ['others between them', `0604${hex('subs')}0101ff0b040a4e00fe`, { circuit: 'ff' }],
    ['the first of two', '0101aa0101bb', { circuit: 'aa' }],
    ['none', '', {}],
    ['cut off', '0106000400', undefined],
    ['without a length', '01', undefined],
  ])('%s', ([, bytes, parts]) => {
    expect(readRelayOption(Buffer.from(bytes, 'hex'))).toEqual(parts)
  })
})

describe('the port that a circuit id means', () => {
  it.for<[form: string, circuit: string, port: string | undefined]>([
    // Cisco IOS: vlan-mod-port, or a text that was configured.
    ['cisco', '000400640103', '1/3'],
    ['cisco', `0107${hex('Gi1/0/3')}`, 'Gi1/0/3'],
    ['juniper', hex('ge-0/0/7.0:prov'), 'ge-0/0/7'],
    ['juniper', hex('xe-0/0/12'), 'xe-0/0/12'],
    ['arista', hex('Ethernet7'), 'Ethernet7'],
    ['arista', hex('Ethernet7/1:100'), 'Ethernet7/1'],
    ['dell', hex('ethernet1/1/3:vlan100'), 'ethernet1/1/3'],
    ['dell', '000400640103', '1/3'],
    // ProCurve: the number of the port; Comware: VLAN and index.
    ['hp', '0011', '17'],
    ['hp', '00000011', '17'],
    ['hp', '000400640011', '17'],
    ['hp', hex('GigabitEthernet1/0/17'), 'GigabitEthernet1/0/17'],
    ['linux', hex('swp17'), 'swp17'],
    ['linux', hex('swp17\0'), 'swp17'],
    ['text', hex('rack 4: port 7'), 'rack 4: port 7'],
    ['Ethernet{{ port }}:{{ vlan }}', hex('Ethernet7:100'), '7'],
    ['Ethernet{{ port }}:{{ vlan }}', hex('Port-Channel7:100'), undefined],
    ['linux', '00ff17', undefined],
    ['juniper', '000400640103', undefined],
    ['text', '', undefined],
    ['text', hex('x'.repeat(129)), undefined],
  ])('%s %s', ([form, circuit, port]) => {
    const place = placeOfRelay({ circuit, relay: '10.78.0.254' }, { sw1: { circuit: form, relay: '10.78.0.254' } })
    expect(place).toEqual(port === undefined ? undefined : { switch: 'sw1', port })
  })

  it.for<[port: string, called: string | undefined]>([
    ['{{ port }}', '3'],
    ['Gi{{ module }}/0/{{ port }}', 'Gi1/0/3'],
    ['{{ port }} in {{ vlan }}', '3 in 100'],
  ])('is called what the site calls it: %s', ([port, called]) => {
    const place = placeOfRelay({ circuit: '000400640103', remote: hex('sw1') }, { sw1: { circuit: 'cisco', port } })
    expect(place?.port).toBe(called)
  })

  it('is none where the name needs what the circuit id does not say', () => {
    const sw1 = { circuit: 'linux', port: '{{ module }}/{{ port }}' }
    expect(placeOfRelay({ circuit: hex('swp1'), remote: hex('sw1') }, { sw1 })).toBeUndefined()
  })
})

describe('the switch that sent it', () => {
  const circuit = hex('eth1')
  const sender = (option: { remote?: string; relay?: string }, switches: Parameters<typeof placeOfRelay>[1]) =>
    placeOfRelay({ circuit, ...option }, switches)?.switch

  it.for<[what: string, declared: string | undefined, remote: string]>([
    ['its name', undefined, hex('sw1')],
    ['its name, behind a type and a length', undefined, `0103${hex('sw1')}`],
    ['a text', 'leaf 1', hex('leaf 1')],
    ['a MAC address', '00:1B:2c:33:44:55', '001b2c334455'],
    ['a MAC address as Cisco sends it', '001b.2c33.4455', '0006001b2c334455'],
    ['a MAC address as text', '00:1b:2c:33:44:55', hex('00:1b:2c:33:44:55')],
    ['bytes', '0x8fff01', '8fff01'],
  ])('is known by its remote id: %s', ([, remote, sent]) => {
    const sw1 = { circuit: 'linux', ...(remote !== undefined && { remote }) }
    expect(sender({ remote: sent }, { sw0: { circuit: 'linux' }, sw1 })).toBe('sw1')
  })

  it('is known by its address where it says nothing else, and only from there where it does', () => {
    const sw1 = { circuit: 'linux', relay: '10.78.0.254' }
    expect(sender({ relay: '10.78.0.254' }, { sw1 })).toBe('sw1')
    expect(sender({ relay: '10.78.0.253' }, { sw1 })).toBeUndefined()
    expect(sender({}, { sw1 })).toBeUndefined()
    const both = { ...sw1, remote: 'leaf1' }
    expect(sender({ relay: '10.78.0.254', remote: hex('leaf1') }, { sw1: both })).toBe('sw1')
    expect(sender({ relay: '10.78.0.254', remote: hex('leaf2') }, { sw1: both })).toBeUndefined()
    expect(sender({ relay: '10.78.0.253', remote: hex('leaf1') }, { sw1: both })).toBeUndefined()
  })

  it('is none where two could have sent it, or none says how to read it', () => {
    const declared = { circuit: 'linux', relay: '10.78.0.254' }
    expect(sender({ relay: '10.78.0.254' }, { sw1: declared, sw2: declared })).toBeUndefined()
    expect(sender({ remote: hex('sw1') }, { sw1: {} })).toBeUndefined()
    expect(placeOfRelay({ remote: hex('sw1') }, { sw1: { circuit: 'linux' } })).toBeUndefined()
  })
})
