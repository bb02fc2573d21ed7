import { MusterError } from '../lib/errors.ts'

/** A whole number somebody typed, not below `least`. */
export function wholeNumber(text: string, least: number): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number))
    throw new MusterError('USAGE', `${text} is not a whole number`)
  if (number < least) throw new MusterError('USAGE', `${text} is too small: at least ${least}`)
  return number
}
