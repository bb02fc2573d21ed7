import { z } from 'zod'
import { type Phase, PHASES, Phase as PhaseSchema, WAITS, isLater } from './phases.ts'
import type { Sighting } from './reports.ts'

/** One boot of a node: when it entered which phase. Kept for the last few of each node, under boots/NODE. */
export const Boot = z.strictObject({
  /** From the script to the agent the same; absent while only its DHCP was seen. */
  id: z.string().optional(),
  mac: z.string(),
  image: z.string().optional(),
  phases: z.array(z.strictObject({ phase: PhaseSchema, at: z.iso.datetime() })).min(1),
  /** Why it is not getting any further. */
  failed: z.strictObject({ at: z.iso.datetime(), reason: z.string() }).optional(),
  /** The last thing that was seen of it. */
  last: z.strictObject({ at: z.iso.datetime(), what: z.string() }),
})
export type Boot = z.infer<typeof Boot>

/** Newest first. */
export const Boots = z.array(Boot)
export const KEPT_BOOTS = 8

export type PhaseSighting = Extract<Sighting, { kind: 'phase' }>

/** What is new after a sighting. */
export interface Advance {
  readonly boots: readonly Boot[]
  /** Entered now, with the seconds the phase before took. */
  readonly entered?: { readonly phase: Phase; readonly before?: { readonly phase: Phase; readonly seconds: number } }
  readonly failed?: string
}

export const phaseOf = (boot: Boot): Phase => boot.phases.at(-1)?.phase ?? 'dhcp'
export const isOver = (boot: Boot): boolean => phaseOf(boot) === 'ready'

/** After so long, a DHCP request of firmware is a boot of its own, whatever became of the one before. */
const FRESH = 120_000

/** What a sighting makes of the boots of its node; undefined when it says nothing new. */
export function advance(boots: readonly Boot[], sighting: PhaseSighting): Advance | undefined {
  const [current, ...older] = boots
  if (current === undefined || beginsAnew(current, sighting)) return begin(boots, sighting)
  if (sighting.phase === 'dhcp') return undefined
  if (sighting.phase === 'failed') return fail(current, older, sighting)
  return proceed(current, older, sighting, sighting.phase)
}

function beginsAnew(current: Boot, { boot, phase, at }: PhaseSighting): boolean {
  const now = phaseOf(current)
  if (phase === 'dhcp') return !['dhcp', 'loader'].includes(now) || ageOf(current, at) > FRESH
  if (boot === current.id) return false
  // The loader asks again, or for the first time after its DHCP.
  if (['loader', 'failed'].includes(phase) && ['dhcp', 'loader'].includes(now)) return false
  return true
}

const ageOf = (boot: Boot, at: string): number => Date.parse(at) - Date.parse(boot.last.at)

function begin(boots: readonly Boot[], sighting: PhaseSighting): Advance {
  const phase: Phase = sighting.phase === 'failed' ? 'loader' : sighting.phase
  const boot: Boot = {
    ...(sighting.boot !== undefined && { id: sighting.boot }),
    mac: sighting.mac,
    ...(sighting.image !== undefined && { image: sighting.image }),
    phases: [{ phase, at: sighting.at }],
    last: lastOf(sighting),
  }
  const kept = [boot, ...boots].slice(0, KEPT_BOOTS)
  if (sighting.phase !== 'failed') return { boots: kept, entered: { phase } }
  const reason = sighting.detail ?? 'for no reason it gave'
  return {
    boots: [{ ...boot, failed: { at: sighting.at, reason } }, ...kept.slice(1)],
    entered: { phase },
    failed: reason,
  }
}

function fail(current: Boot, older: readonly Boot[], sighting: PhaseSighting): Advance | undefined {
  const reason = sighting.detail ?? 'for no reason it gave'
  if (isOver(current) || current.failed?.reason === reason) return undefined
  const next = { ...current, ...named(sighting), failed: { at: sighting.at, reason }, last: lastOf(sighting) }
  return { boots: [next, ...older], failed: reason }
}

function proceed(current: Boot, older: readonly Boot[], sighting: PhaseSighting, phase: Phase): Advance | undefined {
  const now = phaseOf(current)
  const next: Boot = { ...current, ...named(sighting), last: lastOf(sighting) }
  delete next.failed
  if (!isLater(phase, now)) {
    // Said again, or from an attempt after a failure: it is alive, and no further.
    if (current.failed === undefined && sighting.detail === undefined && named(sighting).id === current.id)
      return undefined
    return { boots: [next, ...older] }
  }
  const since = current.phases.at(-1)?.at ?? sighting.at
  // Clocks of nodes may be off by a little: a phase never begins before the one before it.
  const at = sighting.at < since ? since : sighting.at
  const seconds = (Date.parse(at) - Date.parse(since)) / 1000
  return {
    boots: [{ ...next, phases: [...current.phases, { phase, at }] }, ...older],
    entered: { phase, before: { phase: now, seconds } },
  }
}

const named = ({ boot, image }: PhaseSighting): { id?: string; image?: string } => ({
  ...(boot !== undefined && { id: boot }),
  ...(image !== undefined && { image }),
})

const lastOf = ({ at, phase, detail }: PhaseSighting): Boot['last'] => ({ at, what: detail ?? WHAT[phase] })

const WHAT: Readonly<Record<PhaseSighting['phase'], string>> = {
  dhcp: 'its firmware asked for an address',
  loader: 'its loader asked for a script',
  kernel: 'its loader handed over to the kernel',
  initrd: 'the initramfs runs',
  fetch: 'it fetches its root',
  root: 'its root is mounted',
  agent: 'the agent runs',
  ready: 'it is ready',
  failed: 'it failed',
}

/** Why a boot counts as stuck at this moment; undefined while it may still be on its way. */
export function stuck(boot: Boot, now: Date): string | undefined {
  const phase = phaseOf(boot)
  if (phase === 'ready' || boot.failed !== undefined) return undefined
  const { seconds, until } = WAITS[phase]
  if (now.getTime() - Date.parse(boot.last.at) < seconds * 1000) return undefined
  return `stuck in ${phase}: for ${seconds} s nothing was seen that says that ${until}; last seen: ${boot.last.what}`
}

export interface PhaseTime {
  readonly phase: Phase
  readonly at: string
  /** Undefined for the one it is in. */
  readonly seconds: number | undefined
}

/** The phases of a boot with how long each took. */
export const timesOf = (boot: Boot): PhaseTime[] =>
  boot.phases.map(({ phase, at }, index) => {
    const next = boot.phases[index + 1]
    return { phase, at, seconds: next === undefined ? undefined : (Date.parse(next.at) - Date.parse(at)) / 1000 }
  })

export const FIRST_PHASE = PHASES[0]
