import { z } from 'zod'

/** As firmware, loaders and kernels write it: 52:54:00:12:34:56, 52-54-00-…; always lower case with colons inside. */
export const Mac = z
  .string()
  .max(17)
  .transform(text => text.toLowerCase().replaceAll('-', ':'))
  .refine(text => /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(text), 'is not a MAC address')
