import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from '@prometheus-io/client'
import { currentGeneration } from '../control/generations.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiContext, Routes } from './context.ts'

export interface Metrics {
  /** To be told of every reply that is over, however it ended. */
  count(request: FastifyRequest, reply: FastifyReply, took: number): void
  readonly routes: Routes
}

/** Count, errors and latency of every route, and what the state looks like, for Prometheus. */
export function createMetrics(context: ApiContext): Metrics {
  const registers = [new Registry()]
  const [registry] = registers as [Registry]
  collectDefaultMetrics({ register: registry })
  const labelNames = ['method', 'route', 'status'] as const
  const requests = new Counter({
    name: 'muster_http_requests_total',
    help: 'Requests by route and status.',
    labelNames,
    registers,
  })
  const errors = new Counter({
    name: 'muster_http_errors_total',
    help: 'Replies with status 400 or above.',
    labelNames,
    registers,
  })
  const seconds = new Histogram({
    name: 'muster_http_request_seconds',
    help: 'Time until the reply was sent.',
    labelNames: ['method', 'route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const phases = new Histogram({
    name: 'muster_boot_phase_seconds',
    help: 'How long the phases of boots took.',
    labelNames: ['phase'],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640],
    registers,
  })
  context.recorder.onPhase((phase, took) => phases.observe({ phase }, took))
  const gauges: { name: string; help: string; read: () => Promise<number> }[] = [
    { name: 'muster_nodes', help: 'Nodes with desired state.', read: async () => context.control.desired.nodes.size },
    { name: 'muster_revision', help: 'Revision of the state.', read: () => context.store.revision() },
    {
      name: 'muster_generation',
      help: 'Generation of the site in force.',
      read: async () => (await currentGeneration(context.store)).generation?.number ?? 0,
    },
  ]
  for (const { name, help, read } of gauges) {
    const gauge: Gauge = new Gauge({ name, help, registers, collect: async () => gauge.set(await read()) })
  }
  return {
    count(request, reply, took) {
      const labels = { method: request.method, route: request.routeOptions.url ?? 'unknown' }
      const withStatus = { ...labels, status: String(reply.statusCode) }
      requests.inc(withStatus)
      if (reply.statusCode >= 400) errors.inc(withStatus)
      seconds.observe(labels, took)
    },
    routes: app => {
      app.get(
        '/metrics',
        { config: { role: 'viewer' }, schema: { summary: 'Metrics for Prometheus', tags: ['server'] } },
        async (_, reply) => {
          void reply.type(registry.contentType)
          return registry.metrics()
        },
      )
    },
  }
}
