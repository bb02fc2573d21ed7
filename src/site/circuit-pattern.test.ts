import { describe, expect, it } from 'vitest'
import { circuitProblem, fillPattern, matchPattern, portProblem } from './circuit-pattern.ts'

describe('a pattern finds the parts of a text', () => {
  it.for<[pattern: string, text: string, parts: object | undefined]>([
    ['Ethernet{{ port }}:{{ vlan }}', 'Ethernet7:100', { port: '7', vlan: '100' }],
    ['Ethernet{{port}}', 'Ethernet1/7', { port: '1/7' }],
    ['{{ any }} eth {{ module }}/{{ port }}:{{ vlan }}', 'leaf-3 eth 1/17:12', { module: '1', port: '17', vlan: '12' }],
    // Only a whole text, and nothing in a pattern but {{ … }} means anything but itself.
    ['Ethernet{{ port }}:{{ vlan }}', 'xEthernet7:100', undefined],
    ['Ethernet{{ port }}:{{ vlan }}', 'Ethernet7:prov', undefined],
    ['a.c {{ port }}', 'abc 7', undefined],
    ['(a+)+[{{ port }}]', '(a+)+[7]', { port: '7' }],
  ])('%s in %s', ([pattern, text, parts]) => {
    expect(matchPattern(pattern, text)).toEqual(parts)
  })
})

it('a pattern makes a name of parts, of all it asks for or not at all', () => {
  expect(fillPattern('Gi{{ module }}/0/{{ port }}', { module: '1', port: '7' })).toBe('Gi1/0/7')
  expect(fillPattern('Gi{{ module }}/0/{{ port }}', { port: '7' })).toBeUndefined()
})

it.for<[pattern: string, problem: string | undefined]>([
  ['cisco', undefined],
  ['Ethernet{{ port }}', undefined],
  ['cisko', 'is neither one of arista, cisco, dell, hp, juniper, linux, text nor a pattern with {{ port }}'],
  [
    '{{ port }}{{ slot }}',
    '{{ slot }} means nothing here: there are {{ port }}, {{ vlan }}, {{ module }} and {{ any }}',
  ],
  ['{{ port }}{{ port }}', 'has the same {{ … }} twice'],
  ['{{ any }}{{ any }}{{ any }}{{ any }}{{ port }}', 'has more than 4 {{ … }}'],
])('what is wrong with %s for circuit ids', ([pattern, problem]) => {
  expect(circuitProblem(pattern)).toBe(problem)
})

it.for<[pattern: string, problem: string | undefined]>([
  ['Gi{{ module }}/0/{{ port }}', undefined],
  ['Gi1', 'has no {{ port }}: all ports would have one name'],
  ['{{ port }}{{ any }}', '{{ any }} means nothing here: there are {{ port }}, {{ vlan }} and {{ module }}'],
])('what is wrong with %s for names of ports', ([pattern, problem]) => {
  expect(portProblem(pattern)).toBe(problem)
})
