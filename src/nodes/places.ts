import { z } from 'zod'

/** Where a machine was seen to be plugged in. Kept under place/MAC: observed, never written into the site. */
export const Place = z.strictObject({
  switch: z.string().min(1).max(128),
  port: z.string().min(1).max(128),
  /** Who says so. */
  source: z.string().max(64),
  since: z.iso.datetime(),
})
export type Place = z.infer<typeof Place>

export const PLACE = 'place/'
