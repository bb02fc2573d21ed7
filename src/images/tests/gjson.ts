/**
 * Values in JSON by a path, of gjson's syntax what tests need:
 *
 *     moo.nested   a key in a key          list.0    the first of a list      @this   all of it
 *     list.#       how many there are      list.#.a  the a of each            a\.b    a key with a dot
 */
export function valuesAt(document: unknown, path: string): unknown {
  return path === '@this' ? document : follow(document, splitPath(path))
}

/** What is not among the above, in words. */
export function pathProblem(path: string): string | undefined {
  if (path === '@this') return undefined
  if (path === '') return 'is empty'
  const unknown = /(^|\.)@|#\(|[*?|{}[\]]/.exec(path.replaceAll(/\\./g, ''))
  return unknown === null
    ? undefined
    : `uses ${unknown[0]}: keys, numbers, # and @this are known, with \\ before a character that means itself`
}

function splitPath(path: string): string[] {
  return [...path.matchAll(/(?:\\.|[^.\\])+/gs)].map(([part]) => part.replaceAll(/\\(.)/gs, '$1'))
}

function follow(value: unknown, path: readonly string[]): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (Array.isArray(value)) {
    if (key !== '#') return /^\d+$/.test(key) ? follow(value[Number(key)], rest) : undefined
    if (rest.length === 0) return value.length
    return value.map(item => follow(item, rest)).filter(item => item !== undefined)
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return follow((value as Readonly<Record<string, unknown>>)[key], rest)
}
