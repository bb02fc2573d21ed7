/**
 * A number in a header: octal digits, or, where the highest bit of the field is set, GNU's binary form (big-endian, in
 * two's complement). Undefined for anything else, and for what a JavaScript number cannot hold exactly.
 */
export function parseNumber(field: Buffer): number | undefined {
  const value = ((field[0] ?? 0) & 0x80) === 0 ? parseOctal(field) : parseBinary(field)
  return Number.isSafeInteger(value) ? value : undefined
}

function parseOctal(field: Buffer): number | undefined {
  const digits = OCTAL.exec(field.toString('latin1'))?.[1]
  return digits === undefined ? undefined : Number.parseInt(digits || '0', 8)
}

const OCTAL = /^ *([0-7]*)[ \0]*$/

function parseBinary(field: Buffer): number {
  const bits = BigInt(field.length) * 8n - 1n
  // The highest bit only marks the form; the sign is the one after it.
  return Number(BigInt.asIntN(Number(bits), BigInt(`0x${field.toString('hex')}`)))
}

/** Octal digits filled up with zeros and ended by a NUL; undefined where the field is too short. */
export function formatOctal(value: number, width: number): string | undefined {
  if (!Number.isSafeInteger(value) || value < 0) return undefined
  const digits = value.toString(8).padStart(width - 1, '0')
  return digits.length < width ? `${digits}\0` : undefined
}
