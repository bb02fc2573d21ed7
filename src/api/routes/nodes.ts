import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import { type GroupResolver, compareNames, parseNodeSet } from '../../lib/nodeset/index.ts'
import type { DesiredState } from '../../control/desired.ts'
import { currentGeneration } from '../../control/generations.ts'
import { addNodes, removeNodes, setNodes, settingMessage } from '../../site/edit.ts'
import { explainNode } from '../../site/explain.ts'
import { hideSecrets } from '../../site/paths.ts'
import { allObserved, observedOf } from '../../state/observed.ts'
import type { Swap } from '../../nodes/swaps.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import {
  AddNodes,
  EditReply,
  ExplanationReply,
  type NodeItem,
  NodeDetail,
  NodePage,
  RemoveNodes,
  SetNodes,
  SwapNodes,
  SwapReply,
} from '../schemas.ts'

const tags = ['nodes']
const PAGE = 1000
const MAX_PAGE = 50_000

const swapReply = ({ running, ...swap }: Swap): SwapReply => ({
  ...swap,
  running: Object.entries(running).map(([mac, node]) => ({ mac, node })),
})

export const nodeRoutes: Routes = (app, { control, store, recorder, views }) => {
  const groupNames = async (): Promise<readonly string[]> => (await currentGeneration(store)).generation?.groups ?? []
  const list = z.strictObject({
    nodes: z.string().max(10_000).optional().describe('Node set to choose from, such as n[001-016] or @compute.'),
    limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(PAGE),
    after: z.string().max(63).optional().describe('Name of the last node of the page before.'),
  })
  typed(app).get(
    '/api/v1/nodes',
    {
      config: { role: 'viewer' },
      schema: { summary: 'List nodes', tags, querystring: list, response: { 200: NodePage } },
    },
    async ({ query }) => {
      const { desired } = control
      const all = [...desired.nodes.keys()].sort(compareNames)
      const chosen =
        query.nodes === undefined
          ? undefined
          : parseNodeSet(query.nodes, { groups: desiredGroups(desired, await groupNames()) })
      const names = chosen === undefined ? all : all.filter(name => chosen.has(name))
      const start = query.after === undefined ? 0 : names.findIndex(name => compareNames(name, query.after ?? '') > 0)
      const page = start < 0 ? [] : names.slice(start, start + query.limit)
      const observed = await allObserved(store)
      const items = page.map((name): NodeItem => {
        const node = desired.nodes.get(name)
        if (node === undefined) throw new Error(`${name} vanished while it was listed`)
        const { cluster, groups, image, address } = node.summary
        return {
          name,
          cluster,
          groups: [...groups],
          image,
          address,
          observed: observed.get(name) ?? {},
          revision: node.revision,
        }
      })
      const more = start >= 0 && start + query.limit < names.length
      return { items, next: more ? (page.at(-1) ?? null) : null }
    },
  )

  const one = z.strictObject({ name: z.string().max(63) })
  const known = (name: string) => {
    const node = control.desired.get(name)
    if (node === undefined) throw new MusterError('NODE_UNKNOWN', `no node is named ${name}`)
    return node
  }
  typed(app).get(
    '/api/v1/nodes/:name',
    {
      config: { role: 'viewer' },
      schema: {
        summary: 'One node: what it should be and what it is',
        tags,
        params: one,
        response: { 200: NodeDetail },
      },
    },
    async ({ params }) => {
      const node = known(params.name)
      const desired = hideSecrets(node.value) as Record<string, unknown>
      const swap = recorder.swapOf(params.name)
      return {
        name: params.name,
        desired,
        observed: await observedOf(store, params.name),
        ...(swap !== undefined && { swap: swapReply(swap) }),
        revision: node.revision,
      }
    },
  )

  typed(app).post(
    '/api/v1/nodes/:name/swap',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Let it change machines with another node, each with the next boot',
        tags,
        params: one,
        body: SwapNodes,
        response: { 200: SwapReply },
      },
    },
    async request => {
      const { with: other, why } = request.body
      known(request.params.name)
      known(other)
      const swap = await recorder.swap({ node: request.params.name, with: other, why, actor: actorOf(request) })
      await views.refresh()
      if (swap === undefined) throw new Error('a swap vanished while it was made')
      return swapReply(swap)
    },
  )

  typed(app).delete(
    '/api/v1/nodes/:name/swap',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Take that back, as of the next boot of either machine',
        tags,
        params: one,
        response: {
          200: z.strictObject({ swap: SwapReply.nullable().describe('What is left until they have booted.') }),
        },
      },
    },
    async request => {
      const swap = await recorder.undoSwap({ node: request.params.name, actor: actorOf(request) })
      await views.refresh()
      return { swap: swap === undefined ? null : swapReply(swap) }
    },
  )

  const explain = z.strictObject({ path: z.string().max(1000).default('') })
  const explanations = z.strictObject({ items: z.array(ExplanationReply) })
  typed(app).get(
    '/api/v1/nodes/:name/explain',
    {
      config: { role: 'viewer' },
      schema: {
        summary: 'Where its values come from',
        tags,
        params: one,
        querystring: explain,
        response: { 200: explanations },
      },
    },
    async ({ params, query }) => {
      known(params.name)
      return {
        items: explainNode(await control.appliedSite(), params.name, query.path) as z.infer<typeof ExplanationReply>[],
      }
    },
  )

  typed(app).post(
    '/api/v1/nodes',
    {
      config: { role: 'operator' },
      schema: { summary: 'Add nodes to the site and commit', tags, body: AddNodes, response: { 200: EditReply } },
    },
    async request => {
      const { nodes, set, cluster, file, message } = request.body
      return control.edit(
        actorOf(request),
        site => addNodes(site, nodes, set, { cluster, file }),
        message ?? `Add ${nodes}`,
      )
    },
  )
  typed(app).patch(
    '/api/v1/nodes',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Set values of nodes in the site and commit',
        tags,
        body: SetNodes,
        response: { 200: EditReply },
      },
    },
    async request => {
      const { nodes, set, message } = request.body
      return control.edit(actorOf(request), site => setNodes(site, nodes, set), message ?? settingMessage(set, nodes))
    },
  )
  typed(app).delete(
    '/api/v1/nodes',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Remove nodes from the site and commit',
        tags,
        body: RemoveNodes,
        response: { 200: EditReply },
      },
    },
    async request => {
      const { nodes, message } = request.body
      return control.edit(actorOf(request), site => removeNodes(site, nodes), message ?? `Remove ${nodes}`)
    },
  )
}

/** Groups as they are in force: of desired state, not of files that may have changed since. */
function desiredGroups(desired: DesiredState, known: readonly string[]): GroupResolver {
  return {
    all: () => desired.nodes.keys(),
    members: group => {
      const cluster = group.startsWith('cluster:') ? group.slice('cluster:'.length) : undefined
      const found = [...desired.nodes].filter(([, node]) =>
        cluster === undefined ? node.summary.groups.includes(group) : node.summary.cluster === cluster,
      )
      return found.length === 0 && !known.includes(group) ? undefined : found.map(([name]) => name)
    },
  }
}
