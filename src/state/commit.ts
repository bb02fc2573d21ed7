import type { Change, NewEvent } from './store.ts'

/** What no backend could keep faithfully. Only a defect of ours gets here, hence no error of the catalogue. */
export function assertCommit(changes: readonly Change[], events: readonly NewEvent[]): void {
  const keys = new Set<string>()
  for (const { key, value } of changes) {
    if (key === '') throw new TypeError('a key must not be empty')
    if (keys.has(key)) throw new TypeError(`${key}: occurs twice in one commit`)
    keys.add(key)
    assertText('key', key)
    if (value !== null) assertText('value', value)
  }
  for (const { kind, nodes = '', actor, cause = '', trace = '', from = '' } of events) {
    for (const [name, text] of Object.entries({ kind, nodes, actor, cause, trace, from })) assertText(name, text)
  }
}

/** Half of a surrogate pair has no UTF-8: two different keys would become one. */
function assertText(name: string, text: string): void {
  if (!text.isWellFormed()) throw new TypeError(`${name} is not well-formed text: ${JSON.stringify(text)}`)
}
