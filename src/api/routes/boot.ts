import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import { decideNode } from '../../boot/decide.ts'
import { type EnrolPlan, machineScript } from '../../boot/ipxe.ts'
import type { ViewIndex } from '../../boot/index-view.ts'
import { BootView } from '../../boot/view.ts'
import { type Boot, timesOf } from '../../nodes/boots.ts'
import { SightingBatch } from '../../nodes/reports.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { BootExplanation, type BootReply, PutPlaces, TimelineReply } from '../schemas.ts'

const tags = ['boot']
/** An id for scripts that are only shown. */
const NO_BOOT = '0000000000000000'

/** How nodes boot: what each would get and why, how its last boots went; and what boot servers ask and tell. */
export const bootRoutes: Routes = (app, { control, recorder, views, bootServers, trust }) => {
  const one = z.strictObject({ name: z.string().max(63) })
  const known = (name: string): void => {
    if (control.desired.get(name) === undefined) throw new MusterError('NODE_UNKNOWN', `no node is named ${name}`)
  }

  typed(app).get(
    '/api/v1/nodes/:name/timeline',
    {
      config: { role: 'viewer' },
      schema: {
        summary: 'Its last boots, phase by phase',
        tags,
        params: one,
        querystring: z.strictObject({ boots: z.coerce.number().int().min(1).max(100).default(1) }),
        response: { 200: TimelineReply },
      },
    },
    async ({ params, query }) => {
      known(params.name)
      return { node: params.name, boots: recorder.boots(params.name).slice(0, query.boots).map(replyOf) }
    },
  )

  typed(app).get(
    '/api/v1/nodes/:name/boot',
    {
      config: { role: 'viewer' },
      schema: { summary: 'What it would boot now, and why', tags, params: one, response: { 200: BootExplanation } },
    },
    async ({ params }) => {
      known(params.name)
      await views.refresh()
      return explain(views.index(), params.name, {
        servers: bootServers(),
        enrol: trust?.plan(),
        last: recorder.boots(params.name)[0],
      })
    },
  )

  typed(app).post(
    '/api/v1/places',
    {
      config: { role: 'operator' },
      bodyLimit: 16 * 2 ** 20,
      schema: { summary: 'Say where machines are plugged in, as their switches would', tags, body: PutPlaces },
    },
    async (request, reply) => {
      const { places, source } = request.body
      const at = new Date().toISOString()
      const actor = actorOf(request)
      // Of a machine that is named twice the last counts.
      const byMac = new Map(places.map(place => [place.mac, { ...place, source, at }]))
      await views.refresh()
      await recorder.put([...byMac.values()], {
        kind: 'machine.placed',
        actor: actor.name,
        from: actor.from,
        data: { count: byMac.size, source },
      })
      await views.refresh()
      return reply.status(204).send()
    },
  )

  typed(app).get(
    '/api/v1/boot/view',
    {
      config: { role: 'viewer' },
      schema: {
        summary: 'All that a boot server needs to know',
        tags,
        querystring: z.strictObject({ known: z.string().max(64).optional().describe('The version it has already.') }),
        response: { 200: z.union([BootView, z.strictObject({ unchanged: z.literal(true) })]) },
      },
    },
    async ({ query }) => {
      const view = views.index()?.view
      if (view === undefined) throw new MusterError('BOOT_NOT_READY', 'no site has been applied yet')
      return view.version === query.known ? { unchanged: true as const } : view
    },
  )

  typed(app).post(
    '/api/v1/boot/sightings',
    {
      bodyLimit: 32 * 2 ** 20,
      config: { role: 'operator' },
      schema: { summary: 'What a boot server saw and was told', tags, body: SightingBatch },
    },
    async (request, reply) => {
      await recorder.take(request.body)
      return reply.status(204).send()
    },
  )
}

const replyOf = (boot: Boot): BootReply => ({
  ...boot,
  phases: timesOf(boot).map(({ phase, at, seconds }) => ({ phase, at, ...(seconds !== undefined && { seconds }) })),
})

interface Known {
  readonly servers: readonly string[]
  readonly enrol: EnrolPlan | undefined
  readonly last: Boot | undefined
}

function explain(index: ViewIndex | undefined, name: string, { servers, enrol, last }: Known): BootExplanation {
  const node = index?.node(name)
  if (index === undefined || node === undefined)
    throw new MusterError('BOOT_NOT_READY', `what ${name} should boot is not worked out yet`)
  const machine = [...index.machines()].find(([, known]) => known.node === node)
  const decision = decideNode(index, node, machine?.[1])
  const urls: readonly [string, ...string[]] = [servers[0] ?? 'http://BOOT-SERVER:7180', ...servers.slice(1)]
  const script = machineScript(decision, {
    urls,
    boot: last?.id ?? NO_BOOT,
    mac: machine?.[0] ?? '00:00:00:00:00:00',
    shell: index.view.settings.provision.shell,
    enrol,
  })
  const unknown = machine === undefined ? ['no machine is known to be it yet: neither by MAC nor by place'] : []
  return {
    node: name,
    boots: decision.kind === 'discover' ? 'refuse' : decision.kind,
    ...(decision.kind === 'image' && { image: decision.image.digest, form: decision.form }),
    ...(decision.kind === 'refuse' && { problem: decision.problem, hint: decision.hint }),
    because: [...unknown, ...decision.because],
    servers: [...servers],
    script,
    ...(last !== undefined && { last: replyOf(last) }),
  }
}
