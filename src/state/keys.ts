const LAST_CODE_POINT = 0x10ffff
const BEFORE_SURROGATES = 0xd7ff
const AFTER_SURROGATES = 0xe000

/**
 * The smallest text that comes bytewise after everything that starts with the prefix: `node/` → `node0`.
 * undefined when nothing does. UTF-8 orders as code points do, so the last code point that can be raised is raised.
 */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, character => character.codePointAt(0) ?? 0)
  while (points.at(-1) === LAST_CODE_POINT) points.pop()
  const last = points.pop()
  if (last === undefined) return undefined
  return String.fromCodePoint(...points, last === BEFORE_SURROGATES ? AFTER_SURROGATES : last + 1)
}

/** The smallest text that comes bytewise after this one. */
export const afterKey = (key: string): string => `${key}\0`

export const compareBytewise = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
