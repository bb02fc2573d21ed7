import { z } from 'zod'
import { Channel, Network, Provision, Trust } from './schema.ts'
import type { Site } from './site.ts'
import { Switch } from './switches.ts'

/** What a site says of itself rather than of a node: stored beside desired state, for whoever serves nodes. */
export const SiteSettings = z.strictObject({
  site: z.string(),
  networks: z.record(z.string(), Network),
  switches: z.record(z.string(), Switch).optional(),
  provision: Provision,
  /** The image whose kernel runs the discovery system. */
  discovery: z.string().nullable(),
  trust: Trust.default({ keys: {} }),
  channels: z.record(z.string(), Channel).default({}),
})
export type SiteSettings = z.infer<typeof SiteSettings>

/** Where they are kept in the store. */
export const SETTINGS = 'site'

export function settingsOf(site: Site): SiteSettings {
  return {
    site: site.name,
    networks: Object.fromEntries(site.networks),
    ...(site.switches.size > 0 && { switches: Object.fromEntries(site.switches) }),
    provision: site.provision,
    trust: site.trust,
    channels: Object.fromEntries(site.channels),
    discovery: site.provision.discovery ?? site.defaultImage ?? null,
  }
}
