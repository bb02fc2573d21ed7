import { z } from 'zod'
import { canonicalAddress, isAddress } from '../lib/ip.ts'
import { circuitProblem, portProblem } from './circuit-pattern.ts'
import { Name } from './values.ts'

const sound = (problemOf: (text: string) => string | undefined) =>
  z
    .string()
    .min(1)
    .max(200)
    .check(({ value, issues }) => {
      const message = problemOf(value)
      if (message !== undefined) issues.push({ code: 'custom', message, input: value })
    })

/** As it stands in `location.switch`, and as the switch calls itself over LLDP. */
export const SwitchName = z.string().regex(/^[\x21-\x7e]{1,128}$/, 'is not a name of a switch')

const PORTS = 'is not a list of ports such as 1-32 or 1-24,33-40'

/** Numbers of ports: `1-24,33-40`; undefined where the text is no such list, or a longer one than any switch has. */
export function portNumbers(text: string): number[] | undefined {
  const numbers: number[] = []
  for (const part of text.split(',')) {
    const [, first = '', last = first] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part) ?? []
    if (first === '' || Number(last) < Number(first) || Number(last) - Number(first) > 4096) return undefined
    for (let port = Number(first); port <= Number(last); port++) numbers.push(port)
  }
  return numbers.length <= 4096 && new Set(numbers).size === numbers.length ? numbers : undefined
}

const SwitchNodes = z.strictObject({
  ports: z
    .union([z.int().min(0), z.string()])
    .transform(String)
    .refine(text => portNumbers(text) !== undefined, PORTS)
    .describe('The ports that have a node, such as 1-32.'),
  name: z
    .string()
    .min(1)
    .max(200)
    .describe(
      'What they are called: a template over `port`, `switch` and `rack`, such as `n{{ rack }}{{ "%02d" | format(port) }}`.',
    ),
  port: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('What `location.port` is, as a template; the number of the port unless said.'),
  groups: z.array(Name).optional().describe('The groups of these nodes.'),
})

/** What the site knows of a switch: how its option 82 is read, and which nodes its ports are. */
export const Switch = z.strictObject({
  remote: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe('Its remote id in DHCP option 82: a MAC address, bytes in hex, or text; its own name unless said.'),
  circuit: sound(circuitProblem)
    .optional()
    .describe(
      'The form of its circuit ids: arista, cisco, dell, hp, juniper, linux, text, or a pattern such as `Ethernet{{ port }}:{{ vlan }}`. Without it, its option 82 is not read.',
    ),
  port: sound(portProblem)
    .optional()
    .describe('What a port is called in `location.port`, such as `Gi{{ module }}/0/{{ port }}`.'),
  relay: z
    .string()
    .refine(isAddress, 'is not an IP address')
    .transform(canonicalAddress)
    .optional()
    .describe('The address it relays from; where it is said, no other is believed.'),
  rack: z
    .union([z.string().min(1), z.int()])
    .transform(String)
    .optional()
    .describe('The rack of its nodes.'),
  nodes: SwitchNodes.optional().describe('Nodes that need no list: one at each of these ports.'),
})
export type Switch = z.infer<typeof Switch>
