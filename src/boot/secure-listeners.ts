import { once } from 'node:events'
import type { Server } from 'node:https'
import type { Authority } from '../ca/authority.ts'
import type { EnrolPlan } from './ipxe.ts'
import { close, mostConnections, portOf } from './listening.ts'
import { type NodeApiContext, createNodeApi } from './node-api.ts'

/** So often it is looked whether the certificate has to be renewed. */
const LOOK = 3_600_000
/** Their connections are short, where those of heartbeats last as long as nodes do. */
const SHARE = 4

/** The API for nodes, on every address that nodes are answered on, with a certificate that is good for all of them. */
export class SecureListeners implements AsyncDisposable {
  readonly #authority: Authority
  readonly #api: NodeApiContext
  readonly #servers = new Map<string, Server>()
  readonly #timer: NodeJS.Timeout

  constructor(authority: Authority, api: NodeApiContext) {
    this.#authority = authority
    this.#api = api
    authority.onRenewed(made => {
      for (const server of this.#servers.values()) server.setSecureContext(made)
      api.logger.info({ until: authority.facts().server?.until }, 'the certificate of the server is a new one')
    })
    this.#timer = setInterval(() => void this.#renew(), LOOK).unref()
  }

  /** From now on there, and nowhere else. Where it cannot be, nodes boot all the same, without their files. */
  async want(hosts: readonly string[], port: number): Promise<void> {
    for (const [host, server] of this.#servers) {
      if (hosts.includes(host) && (port === 0 || portOf(server) === port)) continue
      this.#servers.delete(host)
      await close(server)
    }
    for (const host of hosts)
      if (!this.#servers.has(host))
        await this.#listen(host, port, hosts).catch((error: unknown) =>
          this.#api.logger.error({ err: error, host, port }, 'nodes get no files from this address'),
        )
  }

  /** What nodes are told that are answered by these, in that order: http://10.77.0.1:7180. Undefined while nobody listens. */
  plan(urls: readonly string[]): EnrolPlan | undefined {
    const ours = urls.flatMap(url => {
      const { hostname } = new URL(url)
      const server = this.#servers.get(hostname)
      const port = server && portOf(server)
      return port === undefined ? [] : [`https://${hostname}:${port}`]
    })
    return ours.length === 0 ? undefined : { urls: ours, ca: this.#authority.sha256 }
  }

  async #listen(host: string, port: number, hosts: readonly string[]): Promise<void> {
    const server = createNodeApi(this.#api, await this.#authority.serverFor(hosts))
    server.maxConnections = Math.max(200, Math.floor(mostConnections() / SHARE))
    server.listen({ host, port, backlog: 4096 })
    await once(server, 'listening')
    this.#servers.set(host, server)
    this.#api.logger.info({ host, port: portOf(server) }, 'nodes get their files here')
  }

  async #renew(): Promise<void> {
    if (this.#servers.size === 0) return
    await this.#authority
      .serverFor([...this.#servers.keys()])
      .catch((error: unknown) => this.#api.logger.error({ err: error }, 'the certificate of the server is not renewed'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all([...this.#servers.values()].map(close))
  }
}
