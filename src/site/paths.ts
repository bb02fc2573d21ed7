export type Plain = Readonly<Record<string, unknown>>

/**
 * Dotted paths into a node's values. Keys may contain dots themselves (`files./etc/slurm/slurm.conf`), so a path is read
 * against the values it is about: parsePath(value, 'files./etc/slurm/slurm.conf.mode') → ['files', '/etc/slurm/slurm.conf', 'mode']
 */
export function parsePath(value: unknown, text: string): string[] | undefined {
  if (text === '') return []
  if (!isMap(value)) return undefined
  for (const key of Object.keys(value)) {
    if (text === key) return [key]
    if (!text.startsWith(`${key}.`)) continue
    const rest = parsePath(value[key], text.slice(key.length + 1))
    if (rest !== undefined) return [key, ...rest]
  }
  return undefined
}

/** Every value that is not a map, with its path. */
export function* flatten(
  value: unknown,
  path: readonly string[] = [],
): Generator<readonly [path: readonly string[], value: unknown]> {
  if (!isMap(value) || '$secret' in value) yield [path, value]
  else for (const [key, child] of Object.entries(value)) yield* flatten(child, [...path, key])
}

export function get(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((found, key) => (isMap(found) ? found[key] : undefined), value)
}

export const isMap = (value: unknown): value is Plain =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A value as people read it on one line; a secret is never shown. */
export function showValue(value: unknown): string {
  if (value === undefined) return '(none)'
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return `[${value.map(showValue).join(', ')}]`
  if (isMap(value)) {
    if ('$secret' in value) return '(secret)'
    if (isContent(value) && Object.keys(value).length === 2) return `files/${value.source}`
    return `{${Object.entries(value)
      .map(([key, item]) => `${key}: ${showValue(item)}`)
      .join(', ')}}`
  }
  return JSON.stringify(value)
}

/** A file of a node, as resolved: its source and the identity of that source's content. */
export interface Content {
  readonly source: string
  readonly blob: string
}

export const isContent = (value: unknown): value is Content & Plain =>
  isMap(value) && typeof value['source'] === 'string' && typeof value['blob'] === 'string'

/** The same value without the text of its secrets: for everything that leaves the program. */
export function hideSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hideSecrets)
  if (!isMap(value)) return value
  if ('$secret' in value) return '(secret)'
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hideSecrets(item)]))
}
