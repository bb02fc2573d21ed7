import { z } from 'zod'
import { type ViewIndex, isServed } from '../../boot/index-view.ts'
import type { BootNode } from '../../boot/view.ts'
import { MusterError } from '../../lib/errors.ts'
import type { Machine } from '../../nodes/machines.ts'
import { type Place, placeOf } from '../../nodes/places.ts'
import { setNodes } from '../../site/edit.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { AdoptMachine, AdoptedReply, MachineList, MachineReply } from '../schemas.ts'

const tags = ['discovery']

/** Machines that nobody knew: what they said of themselves, and how they become nodes. */
export const machineRoutes: Routes = (app, { control, recorder, views, bootServers }) => {
  const one = z.strictObject({ id: z.string().regex(/^[0-9a-f]{12}$/) })
  const reply = (machine: Machine): MachineReply => {
    const index = views.index()
    const place = recorder.place(machine.mac)
    const note = index && noteOf(index, machine.mac, place)
    return {
      ...machine,
      node: index?.machine(machine.mac)?.node.name ?? null,
      ...(place !== undefined && { place }),
      ...(note !== undefined && { note }),
    }
  }

  typed(app).get(
    '/api/v1/machines',
    {
      config: { role: 'viewer' },
      schema: { summary: 'Machines that ran the discovery system', tags, response: { 200: MachineList } },
    },
    async () => ({ items: recorder.machines().map(reply) }),
  )

  typed(app).get(
    '/api/v1/machines/:id',
    {
      config: { role: 'viewer' },
      schema: { summary: 'One of them', tags, params: one, response: { 200: MachineReply } },
    },
    async ({ params }) => reply(recorder.machine(params.id)),
  )

  typed(app).delete(
    '/api/v1/machines/:id',
    { config: { role: 'operator' }, schema: { summary: 'Forget one', tags, params: one } },
    async (request, answer) => {
      const actor = actorOf(request)
      await recorder.forget(request.params.id, { actor: actor.name, from: actor.from })
      return answer.status(204).send()
    },
  )

  typed(app).post(
    '/api/v1/machines/:id/adopt',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Make it a node: its MAC goes into the site, which is committed and applied',
        tags,
        params: one,
        body: AdoptMachine,
        response: { 200: AdoptedReply },
      },
    },
    async request => {
      const actor = actorOf(request)
      const machine = recorder.machine(request.params.id)
      const { node: name, message } = request.body
      await views.refresh()
      const index = views.index()
      const already = index?.machine(machine.mac)?.node.name
      if (already !== undefined) throw new MusterError('MACHINE_KNOWN', `${machine.mac} is ${already} already`)
      const node = index?.node(name)
      if (index === undefined || node === undefined) throw new MusterError('NODE_UNKNOWN', `no node is named ${name}`)
      const target = interfaceFor(node, network => isServed(index.view, network, bootServers().map(hostOf)))
      if (target.mac !== undefined)
        throw new MusterError('NODE_EXISTS', `${name} has a machine already: ${target.mac}`, {
          hint: `let go of it first: muster node set ${name} interfaces.${target.name}.mac=`,
        })
      const path = `interfaces.${target.name}.mac`
      // What cannot be applied is not committed either.
      await control.plan({ allowDirty: false })
      const edit = await control.edit(
        actor,
        site => setNodes(site, name, { [path]: machine.mac }),
        message ?? `Adopt ${machine.mac} as ${name}`,
      )
      const { generation } = await control.apply(actor)
      await views.refresh()
      return { machine: machine.id, node: name, commit: edit.commit, generation: generation.number }
    },
  )
}

/** What somebody who looks after the site should know of it. */
function noteOf(index: ViewIndex, mac: string, place: Place | undefined): string | undefined {
  const waiting = index.waiting(mac)
  const moved = place?.from === undefined ? [] : [`moved from ${place.from}`]
  const where = place && placeOf(place)
  const waits = waiting === undefined ? [] : [`waits: ${waiting.node} is ${waiting.holder}`]
  const isNode = index.machine(mac) !== undefined
  const alone = !isNode && waiting === undefined && where !== undefined && index.at(where) === undefined
  const notes = [...waits, ...(alone ? [`no node is at ${where}`] : []), ...moved]
  return notes.length === 0 ? undefined : notes.join('; ')
}

const hostOf = (url: string): string => new URL(url).hostname

function interfaceFor(node: BootNode, isBooted: (network: string) => boolean): BootNode['interfaces'][number] {
  const found = node.interfaces.find(({ network }) => isBooted(network)) ?? node.interfaces[0]
  if (found === undefined)
    throw new MusterError('EDIT_INVALID', `${node.name} has no interfaces`, {
      hint: `give it one: muster node set ${node.name} interfaces.NETWORK.address=ADDRESS`,
    })
  return found
}
