import { z } from 'zod'
import { parseLldp } from './lldp.ts'
import type { Place } from './places.ts'
import { MachineFacts } from './reports.ts'

/** A machine that ran the discovery system: what it said of itself. Kept under machine/ID. */
export const Machine = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{12}$/),
  mac: z.string(),
  facts: MachineFacts,
  /** What its switch ports say they are. */
  neighbours: z.array(z.strictObject({ interface: z.string(), switch: z.string(), port: z.string() })),
  firstSeen: z.iso.datetime(),
  lastSeen: z.iso.datetime(),
  /** The boot server it talked to. */
  server: z.string(),
})
export type Machine = z.infer<typeof Machine>

export const MACHINE = 'machine/'
export const machineId = (mac: string): string => mac.replaceAll(':', '')

/** A machine that is seen again keeps what it said before where it now says nothing: a switch speaks every half minute. */
export function machineSeen(before: Machine | undefined, facts: MachineFacts, at: string, server: string): Machine {
  const heard = facts.lldp.flatMap(({ interface: name, frame }) => {
    const neighbour = parseLldp(Buffer.from(frame, 'hex'))
    return neighbour === undefined ? [] : [{ interface: name, ...neighbour }]
  })
  return {
    id: machineId(facts.mac),
    mac: facts.mac,
    facts: { ...facts, lldp: [] },
    neighbours: heard.length > 0 ? heard : (before?.neighbours ?? []),
    firstSeen: before?.firstSeen ?? at,
    lastSeen: at,
    server,
  }
}

/** One of which only its place is known: it has not said anything of itself. */
export const placedMachine = (mac: string, { since }: Place): Machine => ({
  id: machineId(mac),
  mac,
  facts: MachineFacts.parse({ mac }),
  neighbours: [],
  firstSeen: since,
  lastSeen: since,
  server: '',
})

/** What the switch says at the interface it booted from; where that is not known, at the only one that heard a switch. */
export function placeSeen({ mac, facts, neighbours }: Machine): { switch: string; port: string } | undefined {
  const booted = facts.macs.find(one => one.mac.toLowerCase() === mac)?.name
  const [only, ...others] = neighbours
  const found = neighbours.find(one => one.interface === booted) ?? (others.length === 0 ? only : undefined)
  return found && { switch: found.switch, port: found.port }
}

/** Whether anything but the time is different. */
export const isNews = (before: Machine | undefined, after: Machine): boolean =>
  before === undefined ||
  JSON.stringify({ ...before, lastSeen: '', facts: { ...before.facts, boot: '' } }) !==
    JSON.stringify({ ...after, lastSeen: '', facts: { ...after.facts, boot: '' } })
