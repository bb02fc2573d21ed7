import { z } from 'zod'
import { type FileKind, fileSchemas } from './schema.ts'

type JsonSchema = Record<string, unknown>

/** What editors need to complete and check the files of a site while one types. */
export function jsonSchemas(): Record<FileKind, JsonSchema> {
  const made = Object.entries(fileSchemas).map(([kind, schema]) => {
    const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline' }) as JsonSchema
    return [kind, { title: `Muster: ${kind}`, ...(withAppending(json) as JsonSchema) }]
  })
  return Object.fromEntries(made) as Record<FileKind, JsonSchema>
}

/** Wherever a list may stand, `key+` may, which appends to it. A secret is a text with the tag !age. */
function withAppending(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withAppending)
  if (typeof value !== 'object' || value === null) return value
  const schema = value as JsonSchema
  const properties = schema['properties'] as Record<string, JsonSchema> | undefined
  if (properties !== undefined && '$secret' in properties)
    return { type: 'string', description: 'A secret: set it with `muster secret set`.' }
  const result = Object.fromEntries(Object.entries(schema).map(([key, child]) => [key, withAppending(child)]))
  if (properties === undefined) return result
  const own = result['properties'] as Record<string, JsonSchema>
  const appending = Object.entries(own).filter(([, child]) => isList(child))
  return {
    ...result,
    properties: { ...own, ...Object.fromEntries(appending.map(([key, child]) => [`${key}+`, child])) },
  }
}

/** A list, or a list that may also be taken away. */
const isList = (schema: JsonSchema): boolean =>
  schema['type'] === 'array' || ((schema['anyOf'] ?? []) as JsonSchema[]).some(isList)
