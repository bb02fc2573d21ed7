import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { MusterError } from '../lib/errors.ts'
import type { Actor, Role } from '../control/actor.ts'
import type { Control } from '../control/control.ts'
import type { Tokens } from '../control/tokens.ts'
import type { Channels } from '../images/channels.ts'
import type { Roots } from '../images/store/collect.ts'
import type { ImageStore } from '../images/store/store.ts'
import type { ViewIndex } from '../boot/index-view.ts'
import type { EnrolPlan } from '../boot/ipxe.ts'
import type { Authority } from '../ca/authority.ts'
import type { NodeFilesState } from '../files/book.ts'
import type { Recorder } from '../nodes/recorder.ts'
import type { Store } from '../state/store.ts'

/** What the routes work with. */
export interface ApiContext {
  readonly version: string
  readonly store: Store
  readonly control: Control
  readonly tokens: Tokens
  readonly images: ImageStore
  readonly channels: Channels
  readonly recorder: Recorder
  /** What nodes should boot. */
  readonly views: Views
  /** Addresses of the boot servers, as nodes are told: http://10.77.0.1:7180. */
  readonly bootServers: () => readonly string[]
  /** By what nodes and this server know each other, where it boots nodes. */
  readonly trust?: Trust | undefined
  /** What nodes get of the site's `files`; nothing unless it is given. */
  readonly files?: {
    readonly about: (node: string) => NodeFilesState
    /** The text of a list that was in force not long ago, or is. */
    readonly earlier: (version: string) => string | undefined
  }
  /** Who uses which image, asked before one is removed; nobody unless it is given. */
  readonly imageRoots?: () => Promise<Roots>
  /** The most bytes a blob may have that somebody sends; 64 GiB unless said. */
  readonly maxBlob?: number
  /** Aborted when the server stops: ends streams. */
  readonly stopping: AbortSignal
}

export interface Trust {
  readonly authority: Pick<Authority, 'pem' | 'facts' | 'renew'>
  /** What nodes are told of it; undefined while nobody listens. */
  readonly plan: () => EnrolPlan | undefined
  readonly revoke: (node: string) => Promise<void>
}

export interface Views {
  readonly index: () => ViewIndex | undefined
  /** Resolves once everything that was applied before is in it. */
  readonly refresh: () => Promise<void>
}

export type Api = FastifyInstance
export type Routes = (app: Api, context: ApiContext) => void

export const typed = (app: Api) => app.withTypeProvider<ZodTypeProvider>()

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route. 'none' is for the two health checks only. */
    role?: Role | 'none'
  }
  interface FastifyRequest {
    actor: Actor | null
  }
}

export function actorOf(request: FastifyRequest): Actor {
  if (request.actor === null) throw new MusterError('TOKEN_MISSING', 'no token was given')
  return request.actor
}
