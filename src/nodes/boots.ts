import { z } from 'zod'
import { type Phase, Phase as PhaseSchema, WAITS, isLater } from './phases.ts'
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
  if (current === undefined) return begin(boots, sighting)
  if (isOldNews(current, older, sighting)) return undefined
  if (beginsAnew(current, sighting)) return begin(boots, sighting)
  if (sighting.phase === 'dhcp') return undefined
  if (sighting.phase === 'failed') return fail(current, older, sighting)
  return proceed(current, older, sighting, sighting.phase)
}

/** Told late, by a server that could not reach us: another boot has followed since. */
function isOldNews(current: Boot, older: readonly Boot[], { boot, phase, at }: PhaseSighting): boolean {
  if (phase === 'dhcp') return isBefore(at, current.last.at)
  if (boot === undefined || boot === current.id) return false
  return isBefore(at, current.phases[0]?.at ?? at) && older.some(({ id }) => id === boot)
}

const isBefore = (at: string, other: string): boolean => Date.parse(at) < Date.parse(other)

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
  if (isOver(current) || current.failed?.reason === reason || isOvertaken(current, sighting)) return undefined
  const next = { ...current, ...named(sighting), failed: { at: sighting.at, reason }, last: lastOf(sighting) }
  return { boots: [next, ...older], failed: reason }
}

function proceed(current: Boot, older: readonly Boot[], sighting: PhaseSighting, phase: Phase): Advance | undefined {
  const now = phaseOf(current)
  if (!isLater(phase, now)) return saidAgain(current, older, sighting, phase)
  const since = current.phases.at(-1)?.at ?? sighting.at
  // Clocks of nodes may be off by a little: a phase never begins before the one before it.
  const at = isBefore(sighting.at, since) ? since : sighting.at
  const seconds = (Date.parse(at) - Date.parse(since)) / 1000
  const phases = [...current.phases, { phase, at }]
  return {
    boots: [{ ...withoutFailure(current), ...named(sighting), phases, last: lastOf({ ...sighting, at }) }, ...older],
    entered: { phase, before: { phase: now, seconds } },
  }
}

/** Said again, or from an attempt after a failure: it is alive, and no further. */
function saidAgain(current: Boot, older: readonly Boot[], sighting: PhaseSighting, phase: Phase): Advance | undefined {
  const last = lastOf(sighting)
  const isMissing = !current.phases.some(known => known.phase === phase)
  const phases = isMissing ? slotIn(current.phases, phase, sighting.at) : current.phases
  const asItWas = isMissing ? { boots: [{ ...current, phases }, ...older] } : undefined
  const goesOn = { boots: [{ ...withoutFailure(current), ...named(sighting), phases, last }, ...older] }
  if ((sighting.boot ?? current.id) !== current.id) return goesOn
  if (isOver(current) || isOvertaken(current, sighting)) return asItWas
  // An agent says every moment why it is not ready yet: only being ready ends that.
  if (current.failed !== undefined) return phaseOf(current) === 'agent' ? asItWas : goesOn
  return sighting.detail === undefined || last.what === current.last.what ? asItWas : goesOn
}

/** It was sent before what was seen last. */
const isOvertaken = (current: Boot, { boot, at }: PhaseSighting): boolean =>
  (boot ?? current.id) === current.id && isBefore(at, current.last.at)

/** Reports may overtake each other: a phase that is told late gets its place between its neighbours. */
function slotIn(phases: Boot['phases'], phase: Phase, at: string): Boot['phases'] {
  const index = phases.findIndex(known => isLater(known.phase, phase))
  const [before, after] = [phases[index - 1]?.at ?? at, phases[index]?.at ?? at]
  const fitting = isBefore(at, before) ? before : isBefore(after, at) ? after : at
  return phases.toSpliced(index, 0, { phase, at: fitting })
}

function withoutFailure(boot: Boot): Boot {
  const { failed: _, ...rest } = boot
  return rest
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

/** Said of a node that is told to boot its own disk: nothing more will be seen of it. */
export const OWN_DISK = 'it was told to boot from its own disk'

/**
 * Why a boot counts as stuck at this moment; undefined while it may still be on its way. What happened before `watched`, in
 * milliseconds, may not have been told to us yet.
 */
export function stuck(boot: Boot, now: Date, watched = 0): string | undefined {
  const phase = phaseOf(boot)
  if (phase === 'ready' || boot.failed !== undefined || boot.last.what === OWN_DISK) return undefined
  const { seconds, until } = WAITS[phase]
  // However often an agent says why it is not ready: that is no step further.
  const since = phase === 'agent' ? (boot.phases.at(-1)?.at ?? boot.last.at) : boot.last.at
  if (now.getTime() - Math.max(Date.parse(since), watched) < seconds * 1000) return undefined
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
