import { z } from 'zod'

const Label = z.string().min(1).max(128)

/** Where a machine was seen to be plugged in. Kept under place/MAC: observed, never written into the site. */
export const Place = z.strictObject({
  switch: Label,
  port: Label,
  /** Who says so. */
  source: z.string().max(64),
  since: z.iso.datetime(),
  /** Where it was before, of a machine that moved: switch and port as one word. */
  from: z.string().max(257).optional(),
  /** The machine that runs as the node of this place: this one waits. */
  waits: z.string().optional(),
  /** The machine that the site names for the node of this place, and that this one was plugged in instead of. */
  instead: z.string().optional(),
})
export type Place = z.infer<typeof Place>

export const PLACE = 'place/'

export const OPTION_82 = 'option 82'
export const LLDP = 'LLDP'

/** Switch and port, as one word. */
export const placeOf = (location: { readonly switch: string; readonly port: string }): string =>
  `${location.switch} ${location.port}`
