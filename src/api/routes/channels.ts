import { z } from 'zod'
import type { ChannelHistory } from '../../images/moves.ts'
import { MusterError } from '../../lib/errors.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { ChannelForgotten, ChannelItem, ChannelList, ChannelMoved, PromoteBody, RollbackBody } from '../schemas.ts'

const tags = ['images']
const one = z.strictObject({
  name: z.string().max(63).describe('Name of the images.'),
  channel: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$/, 'is not the name of a channel'),
})

export const channelRoutes: Routes = (app, { channels, views }) => {
  typed(app).get(
    '/api/v1/channels',
    {
      config: { role: 'viewer' },
      schema: {
        summary: 'List channels, what they point to and every move of them',
        tags,
        response: { 200: ChannelList },
      },
    },
    async () => ({ items: (await channels.list()).map(itemOf) }),
  )

  typed(app).get(
    '/api/v1/channels/:name/:channel',
    {
      config: { role: 'viewer' },
      schema: {
        summary: 'A channel: what it points to and its moves, newest first',
        tags,
        params: one,
        response: { 200: ChannelItem },
      },
    },
    async ({ params: { name, channel } }) => {
      const found = await channels.find(name, channel)
      if (found === undefined)
        throw new MusterError('CHANNEL_UNKNOWN', `nothing was ever promoted to ${name}@${channel}`)
      return itemOf(found)
    },
  )

  typed(app).put(
    '/api/v1/channels/:name/:channel',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Promote an image: let the channel point to it, if it has shown what the site asks for',
        tags,
        params: one,
        body: PromoteBody,
        response: { 200: ChannelMoved },
      },
    },
    async request => {
      const { name, channel } = request.params
      const { image, reason } = request.body
      if (image.split('@')[0] !== name)
        throw new MusterError('REQUEST_INVALID', `${image} is no image of the name ${name}`)
      const moved = await channels.promote(actorOf(request), { image, channel, reason })
      await views.refresh()
      return moved
    },
  )

  typed(app).post(
    '/api/v1/channels/:name/:channel/rollback',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Take the last move of a channel back',
        tags,
        params: one,
        body: RollbackBody,
        response: { 200: ChannelMoved },
      },
    },
    async request => {
      const { name, channel } = request.params
      const moved = await channels.rollback(actorOf(request), name, channel, request.body.reason)
      await views.refresh()
      return moved
    },
  )

  typed(app).delete(
    '/api/v1/channels/:name/:channel',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Forget a channel, and the images that only it ever pointed to',
        tags,
        params: one,
        response: { 200: ChannelForgotten },
      },
    },
    async request => {
      const { name, channel } = request.params
      return { name, channel, freed: await channels.remove(actorOf(request), name, channel) }
    },
  )
}

const itemOf = ({ name, channel, moves }: ChannelHistory): ChannelItem => ({
  name,
  channel,
  digest: moves[0].digest,
  moves: [...moves],
})
