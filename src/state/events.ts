import { afterPrefix } from './keys.ts'
import { integer, type Row, text } from './rows.ts'
import type { Event, EventQuery, NewEvent } from './store.ts'

export const INSERT_EVENT = `INSERT INTO event (revision, time, kind, nodes, actor, cause, trace, origin, data)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

export function eventParameters(event: NewEvent, revision: number, time: string): (string | number | null)[] {
  const { kind, nodes = null, actor, cause = null, trace = null, from = null, data } = event
  return [revision, time, kind, nodes, actor, cause, trace, from, JSON.stringify(data) ?? null]
}

export function toEvent(row: Row): Event {
  return {
    revision: integer(row, 'revision'),
    time: text(row, 'time'),
    kind: text(row, 'kind'),
    actor: text(row, 'actor'),
    ...(row['nodes'] !== null && { nodes: text(row, 'nodes') }),
    ...(row['cause'] !== null && { cause: text(row, 'cause') }),
    ...(row['trace'] !== null && { trace: text(row, 'trace') }),
    ...(row['origin'] !== null && { from: text(row, 'origin') }),
    ...(row['data'] !== null && { data: JSON.parse(text(row, 'data')) as unknown }),
  }
}

/** The question as SQL; there are few forms of it, so that their statements can be kept. */
export function selectEvents(query: EventQuery): { sql: string; parameters: (string | number)[] } {
  const conditions: { sql: string; parameters: (string | number)[] }[] = []
  const { after, before, kind, limit, newestFirst } = query
  if (after !== undefined) conditions.push({ sql: 'revision > ?', parameters: [after] })
  if (before !== undefined) conditions.push({ sql: 'revision < ?', parameters: [before] })
  if (kind !== undefined) conditions.push(kind.endsWith('.*') ? kindStarts(kind.slice(0, -1)) : kindIs(kind))
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.map(condition => condition.sql).join(' AND ')}`
  return {
    sql: `SELECT revision, time, kind, nodes, actor, cause, trace, origin, data FROM event ${where}
      ORDER BY revision ${newestFirst ? 'DESC' : 'ASC'} LIMIT ?`,
    parameters: [...conditions.flatMap(condition => condition.parameters), limit ?? -1],
  }
}

const kindIs = (kind: string) => ({ sql: 'kind = ?', parameters: [kind] })

/** The area narrows it down in order of revision; the "+" keeps SQLite from walking the kinds instead, and sorting. */
const kindStarts = (prefix: string) => ({
  sql: 'area = ? AND +kind >= ? AND +kind < ?',
  parameters: [prefix.slice(0, prefix.indexOf('.')), prefix, afterPrefix(prefix) ?? ''],
})
