import { expect, test } from 'vitest'
import { fileRead, isComplaint } from './daemon.ts'

test.each([
  ['dnsmasq-dhcp[7]: read /var/lib/muster/dnsmasq/reservations', '/var/lib/muster/dnsmasq/reservations'],
  ['dnsmasq[7]: read /var/lib/muster/dnsmasq/hosts - 40000 names', '/var/lib/muster/dnsmasq/hosts'],
  ['dnsmasq-dhcp[7]: 99 vendor class: read /var/lib/muster/dnsmasq/hosts', undefined],
  ['read /var/lib/muster/dnsmasq/hosts', undefined],
])('%j says that %j was read', (line, file) => {
  expect(fileRead(line)).toBe(file)
})

test.each([
  ['dnsmasq[7]: duplicate dhcp-host IP address 10.77.1.1 at line 3 of /var/lib/muster/dnsmasq/reservations', true],
  ['dnsmasq[7]: failed to create listening socket for 10.77.0.1: Address already in use', true],
  ['dnsmasq[7]: warning: interface eth9 does not currently exist', true],
  ['dnsmasq[7]: cannot read /var/lib/muster/dnsmasq/added/3: No such file or directory', false],
  ['dnsmasq[7]: warning: no upstream servers configured', false],
  ['dnsmasq-dhcp[7]: 99 vendor class: failed at line 1 of it', false],
  ['dnsmasq[7]: started, version 2.90 DNS disabled', false],
])('%j is a complaint: %j', (line, expected) => {
  expect(isComplaint(line)).toBe(expected)
})
