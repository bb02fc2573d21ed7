import { z } from 'zod'
import { currentGeneration } from '../../control/generations.ts'
import { fold } from '../../lib/nodeset/index.ts'
import { addGroup, removeGroup, setGroup, settingMessage } from '../../site/edit.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { AddGroup, EditReply, GroupList, RemoveGroup, SetGroup } from '../schemas.ts'

const tags = ['groups']

export const groupRoutes: Routes = (app, { control, store }) => {
  typed(app).get(
    '/api/v1/groups',
    {
      config: { role: 'viewer' },
      schema: { summary: 'List groups with their nodes, as applied', tags, response: { 200: GroupList } },
    },
    async () => {
      const { generation } = await currentGeneration(store)
      const members = new Map<string, string[]>((generation?.groups ?? []).map(group => [group, []]))
      for (const [name, node] of control.desired.nodes)
        for (const group of node.summary.groups) members.get(group)?.push(name)
      const items = [...members].map(([name, nodes]) => ({ name, nodes: fold(nodes), count: nodes.length }))
      return { items: items.sort((a, b) => a.name.localeCompare(b.name)) }
    },
  )

  const one = z.strictObject({ name: z.string().max(63) })
  typed(app).post(
    '/api/v1/groups',
    {
      config: { role: 'operator' },
      schema: { summary: 'Add a group to the site and commit', tags, body: AddGroup, response: { 200: EditReply } },
    },
    async request => {
      const { name, set, message } = request.body
      return control.edit(actorOf(request), site => addGroup(site, name, set), message ?? `Add group ${name}`)
    },
  )
  typed(app).patch(
    '/api/v1/groups/:name',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Set values of a group in the site and commit',
        tags,
        params: one,
        body: SetGroup,
        response: { 200: EditReply },
      },
    },
    async request => {
      const { set, message } = request.body
      const { name } = request.params
      return control.edit(
        actorOf(request),
        site => setGroup(site, name, set),
        message ?? settingMessage(set, `group ${name}`),
      )
    },
  )
  typed(app).delete(
    '/api/v1/groups/:name',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Remove a group from the site and commit',
        tags,
        params: one,
        body: RemoveGroup.nullish(),
        response: { 200: EditReply },
      },
    },
    async request => {
      const { name } = request.params
      return control.edit(
        actorOf(request),
        site => removeGroup(site, name),
        request.body?.message ?? `Remove group ${name}`,
      )
    },
  )
}
