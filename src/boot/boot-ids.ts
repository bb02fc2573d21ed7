import { type KeyObject, createHmac, randomUUID, timingSafeEqual } from 'node:crypto'

/**
 * 32 hex digits: 8 of the time in seconds, 8 of chance, 16 of a signature over those and the machine they were given to. So a
 * server knows its own after a restart, without having written them down.
 */
const OURS = /^([0-9a-f]{8})([0-9a-f]{8})([0-9a-f]{16})$/

/** Whoever is no node gets one of these: it opens nothing. */
export const strangersBootId = (): string => randomDigits().slice(16)

/** Looks like one of ours, and opens nothing. */
export const emptyBootId = (): string => randomDigits()

export function makeBootId(key: KeyObject, node: string, mac: string, seconds: number): string {
  const time = seconds.toString(16).padStart(8, '0')
  const chance = randomDigits().slice(24)
  return time + chance + signatureOf(key, node, mac, time, chance)
}

/** When it was given out, in seconds; undefined where it was not given to this machine as this node. */
export function bootIdTime(key: KeyObject, boot: string, node: string, mac: string): number | undefined {
  const [, time, chance, signature] = OURS.exec(boot) ?? []
  if (time === undefined || chance === undefined || signature === undefined) return undefined
  const expected = signatureOf(key, node, mac, time, chance)
  return timingSafeEqual(Buffer.from(signature), Buffer.from(expected)) ? Number.parseInt(time, 16) : undefined
}

/** Of the random ones: Node draws those of many at once, where bytes cost a system call each time. */
const randomDigits = (): string => randomUUID().replaceAll('-', '')

const signatureOf = (key: KeyObject, node: string, mac: string, time: string, chance: string): string =>
  createHmac('sha256', key).update(`boot|${node}|${mac}|${time}|${chance}`).digest('hex').slice(0, 16)
