import { describe, expect, it } from 'vitest'
import {
  type Advance,
  Boot,
  KEPT_BOOTS,
  OWN_DISK,
  type PhaseSighting,
  advance,
  isOver,
  phaseOf,
  stuck,
  timesOf,
} from './boots.ts'
import { PHASES, type Phase, WAITS } from './phases.ts'

const MAC = '52:54:00:00:00:01'
const [A, B] = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb']
const IMAGE = `sha256:${'1'.repeat(64)}`

/** So many seconds after power-on. */
const at = (seconds: number): string => new Date(Date.parse('2026-03-01T12:00:00.000Z') + seconds * 1000).toISOString()

const seen = (
  phase: PhaseSighting['phase'],
  seconds: number,
  more: Partial<Pick<PhaseSighting, 'boot' | 'detail' | 'image'>> = {},
): PhaseSighting => ({ kind: 'phase', at: at(seconds), server: '10.77.0.1', mac: MAC, phase, ...more })

/** A boot that has come so far, a second a phase; only its DHCP was seen without an id. */
function bootAt(phase: Phase, more: Partial<Boot> = {}): Boot {
  const phases = PHASES.slice(0, PHASES.indexOf(phase) + 1).map((name, index) => ({ phase: name, at: at(index) }))
  const last = { at: phases.at(-1)?.at ?? at(0), what: 'something' }
  return Boot.parse({ ...(phase !== 'dhcp' && { id: A }), mac: MAC, phases, last, ...more })
}

/** All sightings of a node, one after the other, and what is kept of them. */
function after(...sightings: PhaseSighting[]): readonly Boot[] {
  let boots: readonly Boot[] = []
  for (const sighting of sightings) boots = advance(boots, sighting)?.boots ?? boots
  for (const boot of boots) Boot.parse(boot)
  return boots
}

const phasesOf = (boot: Boot | undefined): string[] => boot?.phases.map(({ phase }) => phase) ?? []

/** Nothing new; another boot begins; a phase is entered; the boot fails; gets another id; goes on after a failure. */
type Outcome = '-' | 'another' | 'enters' | 'fails' | 'renamed' | 'resumes'

function outcomeOf(before: Boot, step: Advance | undefined): Outcome {
  if (step === undefined) return '-'
  const [boot] = step.boots
  if (step.boots.length > 1) return 'another'
  if (step.entered !== undefined) return 'enters'
  if (step.failed !== undefined) return 'fails'
  return boot?.id === before.id ? 'resumes' : 'renamed'
}

const SIGHTINGS = [...PHASES, 'failed'] as const

/** Every phase a boot can be in, and every sighting. */
function each(table: string, boot: (phase: Phase) => Boot, id: (current: Boot) => string | undefined): void {
  const rows = table.trim().split('\n').slice(1)
  const outcomes = new Map(rows.map(row => row.trim().split(/ +/)).map(([phase = '', ...cells]) => [phase, cells]))
  const cases = PHASES.flatMap(phase =>
    SIGHTINGS.map((sighting, index) => [phase, sighting, outcomes.get(phase)?.[index]] as const),
  )
  it.for(cases)('in %s, %s: %s', ([phase, sighting, outcome]) => {
    const current = boot(phase)
    const from = id(current)
    const named = from === undefined || sighting === 'dhcp' ? {} : { boot: from }
    const step = advance([current], seen(sighting, 60, named))
    const [first = current, ...older] = step?.boots ?? [current]
    expect({
      outcome: outcomeOf(current, step),
      entered: step?.entered,
      isFailed: first.failed !== undefined,
      last: first.last.at,
      older,
    }).toEqual({ outcome, ...expected(outcome as Outcome, current, sighting) })
  })
}

function expected(outcome: Outcome, current: Boot, sighting: PhaseSighting['phase']): object {
  const phase = sighting === 'failed' ? 'loader' : sighting
  const now = phaseOf(current)
  const since = { phase: now, seconds: 60 - PHASES.indexOf(now) }
  const told = { entered: undefined, isFailed: false, last: at(60), older: [] }
  if (outcome === '-') return { ...told, isFailed: current.failed !== undefined, last: current.last.at }
  if (outcome === 'another') return { ...told, entered: { phase }, isFailed: sighting === 'failed', older: [current] }
  if (outcome === 'enters') return { ...told, entered: { phase, before: since } }
  return { ...told, isFailed: outcome === 'fails' }
}

describe('what is seen of the same boot', () => {
  each(
    `
              dhcp     loader   kernel   initrd   fetch    root     agent    ready    failed
    dhcp      -        enters   enters   enters   enters   enters   enters   enters   fails
    loader    -        -        enters   enters   enters   enters   enters   enters   fails
    kernel    another  -        -        enters   enters   enters   enters   enters   fails
    initrd    another  -        -        -        enters   enters   enters   enters   fails
    fetch     another  -        -        -        -        enters   enters   enters   fails
    root      another  -        -        -        -        -        enters   enters   fails
    agent     another  -        -        -        -        -        -        enters   fails
    ready     another  -        -        -        -        -        -        -        -`,
    bootAt,
    current => current.id,
  )
})

describe('what is seen of another boot', () => {
  each(
    `
              dhcp     loader   kernel   initrd   fetch    root     agent    ready    failed
    dhcp      -        enters   another  another  another  another  another  another  fails
    loader    -        renamed  another  another  another  another  another  another  fails
    kernel    another  another  another  another  another  another  another  another  another
    initrd    another  another  another  another  another  another  another  another  another
    fetch     another  another  another  another  another  another  another  another  another
    root      another  another  another  another  another  another  another  another  another
    agent     another  another  another  another  another  another  another  another  another
    ready     another  another  another  another  another  another  another  another  another`,
    bootAt,
    () => B,
  )
})

describe('what is seen of a boot that had failed', () => {
  each(
    `
              dhcp     loader   kernel   initrd   fetch    root     agent    ready    failed
    dhcp      -        enters   enters   enters   enters   enters   enters   enters   fails
    loader    -        resumes  enters   enters   enters   enters   enters   enters   fails
    kernel    another  resumes  resumes  enters   enters   enters   enters   enters   fails
    initrd    another  resumes  resumes  resumes  enters   enters   enters   enters   fails
    fetch     another  resumes  resumes  resumes  resumes  enters   enters   enters   fails
    root      another  resumes  resumes  resumes  resumes  resumes  enters   enters   fails
    agent     another  -        -        -        -        -        -        enters   fails
    ready     another  -        -        -        -        -        -        -        -`,
    phase => bootAt(phase, { failed: { at: at(30), reason: 'no such file' } }),
    current => current.id,
  )
})

describe('a whole boot', () => {
  it('is one boot with all its phases, and keeps its image', () => {
    const boots = after(
      seen('dhcp', 0),
      seen('loader', 2, { boot: A, image: IMAGE }),
      seen('loader', 2, { boot: A, detail: 'fetches kernel and initramfs' }),
      seen('kernel', 4, { boot: A }),
      seen('initrd', 9, { boot: A }),
      seen('fetch', 10, { boot: A }),
      seen('root', 14, { boot: A }),
      seen('agent', 20, { boot: A }),
      seen('ready', 21, { boot: A }),
    )
    expect(boots).toEqual([
      {
        id: A,
        mac: MAC,
        image: IMAGE,
        phases: [
          { phase: 'dhcp', at: at(0) },
          { phase: 'loader', at: at(2) },
          { phase: 'kernel', at: at(4) },
          { phase: 'initrd', at: at(9) },
          { phase: 'fetch', at: at(10) },
          { phase: 'root', at: at(14) },
          { phase: 'agent', at: at(20) },
          { phase: 'ready', at: at(21) },
        ],
        last: { at: at(21), what: 'it is ready' },
      },
    ])
    expect(boots.map(timesOf)).toEqual([
      [
        { phase: 'dhcp', at: at(0), seconds: 2 },
        { phase: 'loader', at: at(2), seconds: 2 },
        { phase: 'kernel', at: at(4), seconds: 5 },
        { phase: 'initrd', at: at(9), seconds: 1 },
        { phase: 'fetch', at: at(10), seconds: 4 },
        { phase: 'root', at: at(14), seconds: 6 },
        { phase: 'agent', at: at(20), seconds: 1 },
        { phase: 'ready', at: at(21), seconds: undefined },
      ],
    ])
    expect(boots.map(isOver)).toEqual([true])
  })

  it.for<[PhaseSighting['phase'], string]>([
    ['dhcp', 'its firmware asked for an address'],
    ['loader', 'its loader asked for a script'],
    ['kernel', 'its loader handed over to the kernel'],
    ['initrd', 'the initramfs runs'],
    ['fetch', 'it fetches its root'],
    ['root', 'its root is mounted'],
    ['agent', 'the agent runs'],
    ['ready', 'it is ready'],
    ['failed', 'it failed'],
  ])('was last seen in %s: %s', ([phase, what]) => {
    expect(after(seen(phase, 0, { boot: A }))[0]?.last).toEqual({ at: at(0), what })
  })

  it('says more where more is told', () => {
    expect(after(seen('kernel', 0, { boot: A, detail: 'over the second port' }))[0]?.last.what).toBe(
      'over the second port',
    )
  })

  it('of which only the end is seen has only that', () => {
    expect(phasesOf(after(seen('ready', 0, { boot: A }))[0])).toEqual(['ready'])
  })
})

describe('firmware that asks for an address', () => {
  it('asks several times in one boot', () => {
    expect(after(seen('dhcp', 0), seen('dhcp', 4), seen('dhcp', 12))).toHaveLength(1)
  })

  it('after two minutes boots anew, whatever became of the boot before', () => {
    expect(after(seen('dhcp', 0), seen('dhcp', 120))).toHaveLength(1)
    expect(after(seen('dhcp', 0), seen('dhcp', 120.001))).toHaveLength(2)
    expect(after(seen('dhcp', 0), seen('loader', 60, { boot: A }), seen('dhcp', 170))).toHaveLength(1)
    expect(after(seen('dhcp', 0), seen('loader', 60, { boot: A }), seen('dhcp', 181))).toHaveLength(2)
  })

  it('boots anew at once when it had got further', () => {
    const boots = after(seen('kernel', 0, { boot: A }), seen('dhcp', 5))
    expect(boots.map(phasesOf)).toEqual([['dhcp'], ['kernel']])
    expect(boots[0]?.id).toBeUndefined()
  })
})

describe('a loader', () => {
  it('that asks again gets another id, and goes on in the same boot', () => {
    const boots = after(seen('dhcp', 0), seen('loader', 1, { boot: A }), seen('loader', 90, { boot: B, image: IMAGE }))
    expect(boots).toEqual([
      {
        id: B,
        mac: MAC,
        image: IMAGE,
        phases: [
          { phase: 'dhcp', at: at(0) },
          { phase: 'loader', at: at(1) },
        ],
        last: { at: at(90), what: 'its loader asked for a script' },
      },
    ])
  })

  it('may ask another server, whose clock is behind', () => {
    const boots = after(seen('loader', 10, { boot: A }), seen('loader', 7, { boot: B }), seen('kernel', 8, { boot: B }))
    expect(boots.map(({ id, phases }) => ({ id, phases }))).toEqual([
      {
        id: B,
        phases: [
          { phase: 'loader', at: at(10) },
          { phase: 'kernel', at: at(10) },
        ],
      },
    ])
  })

  it('that gets nothing to boot has failed, once for the same reason', () => {
    const refused = seen('failed', 1, { boot: A, detail: 'n1 has no image to boot' })
    const [boot] = after(refused)
    expect(boot).toEqual({
      id: A,
      mac: MAC,
      phases: [{ phase: 'loader', at: at(1) }],
      failed: { at: at(1), reason: 'n1 has no image to boot' },
      last: { at: at(1), what: 'n1 has no image to boot' },
    })
    expect(advance(after(refused), { ...refused, at: at(31), boot: B })).toBeUndefined()
    const [later] = after(refused, seen('loader', 61, { boot: B, image: IMAGE }))
    expect(later).toMatchObject({ id: B, image: IMAGE, phases: [{ phase: 'loader' }] })
    expect(later?.failed).toBeUndefined()
  })
})

describe('a boot that fails', () => {
  it('says why, or that nobody knows', () => {
    const fetching = seen('fetch', 0, { boot: A })
    const [known, unknown] = [
      after(fetching, seen('failed', 5, { boot: A, detail: 'sha256 is wrong' })),
      after(fetching, seen('failed', 5, { boot: A })),
    ]
    expect(known[0]?.failed).toEqual({ at: at(5), reason: 'sha256 is wrong' })
    expect(unknown[0]?.failed).toEqual({ at: at(5), reason: 'for no reason it gave' })
  })

  it('may go on from where it was, and then get further', () => {
    const trouble = [seen('fetch', 0, { boot: A }), seen('failed', 5, { boot: A, detail: 'no route to host' })]
    const [again] = after(...trouble, seen('initrd', 10, { boot: A }))
    expect(again?.failed).toBeUndefined()
    expect(phasesOf(again)).toEqual(['initrd', 'fetch'])
    const [on] = after(...trouble, seen('initrd', 10, { boot: A }), seen('fetch', 11, { boot: A }))
    expect(on?.failed).toBeUndefined()
    expect(on?.last).toEqual({ at: at(10), what: 'the initramfs runs' })
    expect(phaseOf(after(...trouble, seen('root', 20, { boot: A }))[0] as Boot)).toBe('root')
  })

  it('after it was ready has not', () => {
    expect(advance([bootAt('ready')], seen('failed', 60, { boot: A, detail: 'too late' }))).toBeUndefined()
  })
})

describe('what is told late', () => {
  it('of a phase that others have overtaken gets its place between them', () => {
    const boots = after(
      seen('kernel', 4, { boot: A }),
      seen('fetch', 10, { boot: A }),
      seen('initrd', 9, { boot: A }),
      seen('agent', 30, { boot: A }),
      seen('root', 25, { boot: A }),
    )
    expect(boots.flatMap(boot => boot.phases)).toEqual([
      { phase: 'kernel', at: at(4) },
      { phase: 'initrd', at: at(9) },
      { phase: 'fetch', at: at(10) },
      { phase: 'root', at: at(25) },
      { phase: 'agent', at: at(30) },
    ])
    expect(boots[0]?.last).toEqual({ at: at(30), what: 'the agent runs' })
  })

  it.for([
    [3, 4],
    [4, 4],
    [7, 7],
    [10, 10],
    [12, 10],
  ] as const)('by a clock that is off (%i) stays between its neighbours (%i)', ([told, kept]) => {
    const [boot] = after(
      seen('kernel', 4, { boot: A }),
      seen('fetch', 10, { boot: A }),
      seen('initrd', told, { boot: A }),
    )
    expect(boot?.phases[1]).toEqual({ phase: 'initrd', at: at(kept) })
  })

  it('never lets a phase begin before the one before it', () => {
    const step = advance(after(seen('agent', 20, { boot: A })), seen('ready', 18, { boot: A }))
    expect(step?.entered).toEqual({ phase: 'ready', before: { phase: 'agent', seconds: 0 } })
    expect(step?.boots[0]?.last.at).toBe(at(20))
  })

  it('whatever number of digits its time has', () => {
    const boots = after(seen('agent', 20.5, { boot: A }))
    const step = advance(boots, { ...seen('ready', 20, { boot: A }), at: '2026-03-01T12:00:20Z' })
    expect(step?.entered?.before).toEqual({ phase: 'agent', seconds: 0 })
  })

  it('neither makes good what failed after it nor fails what went on after it', () => {
    const failed = [seen('fetch', 0, { boot: A }), seen('failed', 9, { boot: A, detail: 'no route to host' })]
    expect(advance(after(...failed), seen('fetch', 8, { boot: A }))).toBeUndefined()
    const on = [...failed, seen('fetch', 12, { boot: A })]
    expect(advance(after(...on), seen('failed', 10, { boot: A, detail: 'no answer' }))).toBeUndefined()
  })

  it('of a boot that another has followed is of no interest', () => {
    const two = [seen('ready', 0, { boot: A }), seen('dhcp', 100), seen('loader', 102, { boot: B })]
    expect(advance(after(...two), seen('ready', 50, { boot: A }))).toBeUndefined()
    expect(advance(after(...two), seen('agent', 99, { boot: A }))).toBeUndefined()
    // But what it does now it does.
    expect(advance(after(...two), seen('ready', 110, { boot: A }))?.entered).toEqual({ phase: 'ready' })
  })

  it('of the DHCP of a boot that is further is of no interest', () => {
    const boots = after(seen('loader', 2, { boot: A }), seen('kernel', 5, { boot: A }), seen('ready', 60, { boot: A }))
    expect(advance(boots, seen('dhcp', 0))).toBeUndefined()
    expect(advance(boots, seen('dhcp', 61))?.entered).toEqual({ phase: 'dhcp' })
  })
})

describe('what is said again', () => {
  it('is nothing new; other words are', () => {
    const waiting = [seen('agent', 0, { boot: A }), seen('agent', 1, { boot: A, detail: 'not ready: load is high' })]
    expect(after(...waiting)[0]?.last).toEqual({ at: at(1), what: 'not ready: load is high' })
    expect(advance(after(...waiting), seen('agent', 2, { boot: A, detail: 'not ready: load is high' }))).toBeUndefined()
    const step = advance(after(...waiting), seen('agent', 3, { boot: A, detail: 'not ready: no GPU' }))
    expect(step?.entered).toBeUndefined()
    expect(step?.boots[0]?.last).toEqual({ at: at(3), what: 'not ready: no GPU' })
  })

  it('by an agent that was started again does not matter', () => {
    expect(advance([bootAt('ready')], seen('agent', 60, { boot: A, detail: 'not ready: no GPU' }))).toBeUndefined()
  })
})

describe('the boots of a node', () => {
  it('are the last eight, newest first', () => {
    const ids = Array.from({ length: 12 }, (_, index) => index.toString(16).repeat(16))
    const boots = after(...ids.map((boot, index) => seen('ready', index * 100, { boot })))
    expect(KEPT_BOOTS).toBe(8)
    expect(boots.map(({ id }) => id)).toEqual(ids.slice(4).reverse())
  })

  it('are the last eight also when the newest fails at once', () => {
    const ids = Array.from({ length: 12 }, (_, index) => index.toString(16).repeat(16))
    const boots = after(
      ...ids.map((boot, index) => seen('ready', index * 100, { boot })),
      seen('failed', 5000, { boot: A, detail: 'no image' }),
    )
    expect(boots).toHaveLength(8)
    expect(boots[0]).toMatchObject({ id: A, failed: { reason: 'no image' } })
  })
})

describe('a boot is stuck', () => {
  const waits = Object.entries(WAITS) as [Exclude<Phase, 'ready'>, (typeof WAITS)['dhcp']][]

  it.for(waits)('in %s after its time, and not before', ([phase, { seconds, until }]) => {
    const since = PHASES.indexOf(phase)
    const boot = bootAt(phase, { last: { at: at(since), what: 'the light was on' } })
    expect(stuck(boot, new Date(at(since + seconds - 0.001)))).toBeUndefined()
    expect(stuck(boot, new Date(at(since + seconds)))).toBe(
      `stuck in ${phase}: for ${seconds} s nothing was seen that says that ${until}; last seen: the light was on`,
    )
  })

  it('in words, for the person who reads it', () => {
    expect(stuck(after(seen('fetch', 0, { boot: A }))[0] as Boot, new Date(at(900)))).toBe(
      'stuck in fetch: for 900 s nothing was seen that says that the root is there and its digest is right; last seen: it fetches its root',
    )
  })

  it('never when it is ready, has failed already, or was told to boot its own disk', () => {
    const never = new Date(at(1e6))
    expect(stuck(bootAt('ready'), never)).toBeUndefined()
    expect(stuck(bootAt('fetch', { failed: { at: at(9), reason: 'no route' } }), never)).toBeUndefined()
    expect(stuck(after(seen('loader', 0, { boot: A, detail: OWN_DISK }))[0] as Boot, never)).toBeUndefined()
  })

  it('though its agent says every second why it is not ready', () => {
    const talk = Array.from({ length: 400 }, (_, second) =>
      seen('agent', second, { boot: A, detail: `not ready: load is ${second}` }),
    )
    const [boot] = after(...talk) as [Boot]
    expect(boot.last.at).toBe(at(399))
    expect(stuck(boot, new Date(at(300)))).toContain('last seen: not ready: load is 399')
  })

  it('not for what went on while nobody watched', () => {
    const boot = bootAt('dhcp')
    const watched = Date.parse(at(1000))
    expect(stuck(boot, new Date(at(1119)), watched)).toBeUndefined()
    expect(stuck(boot, new Date(at(1120)), watched)).toContain('stuck in dhcp')
  })
})
