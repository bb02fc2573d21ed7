import { z } from 'zod'
import { KIND, bases } from './recipe.ts'
import { type FileKind, fileSchemas } from './schema.ts'

type JsonSchema = Record<string, unknown>

/** One kind of file as JSON Schema, as it is written rather than as it is read. */
export function inputSchema(kind: FileKind): JsonSchema {
  const json = toJson(fileSchemas[kind])
  if (kind !== 'image') return json
  // `from` has checks of its own, which JSON Schema cannot see: they are told here.
  const properties = json['properties'] as Record<string, JsonSchema>
  const kinds = Object.fromEntries(Object.entries(bases).map(([name, schema]) => [name, withShorthand(toJson(schema))]))
  const names = { propertyNames: { type: 'string', pattern: KIND.source }, minProperties: 1, maxProperties: 1 }
  const from = { ...properties['from'], type: 'object', properties: kinds, ...names }
  return withTemplates({ ...json, properties: { ...properties, from } })
}

/** `debian: bookworm` for `debian: { suite: bookworm }`. */
const withShorthand = (schema: JsonSchema): JsonSchema => {
  const { description, ...plain } = schema
  return schema['properties'] === undefined ? schema : { description, anyOf: [plain, { type: ['string', 'number'] }] }
}

const TEMPLATE: JsonSchema = { type: 'string', pattern: String.raw`\{\{|\{%` }

/** Any value of a recipe may be a template: unlike in a layer it is rendered before it is held against the schema. */
function withTemplates(schema: JsonSchema): JsonSchema {
  const { properties, items, additionalProperties, description } = schema as Record<string, JsonSchema | undefined>
  if (properties !== undefined || typeof additionalProperties === 'object') {
    const inside = Object.entries((properties ?? {}) as Record<string, JsonSchema>)
    return {
      ...schema,
      ...(properties && { properties: Object.fromEntries(inside.map(([key, child]) => [key, withTemplates(child)])) }),
      ...(typeof additionalProperties === 'object' && { additionalProperties: withTemplates(additionalProperties) }),
    }
  }
  const plain = items === undefined ? schema : { ...schema, items: withTemplates(items) }
  return { ...(description !== undefined && { description }), anyOf: [plain, TEMPLATE] }
}

function toJson(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    reused: 'inline',
  }) as JsonSchema
  return json
}

/** What editors need to complete and check the files of a site while one types. */
export function jsonSchemas(): Record<FileKind, JsonSchema> {
  const made = (Object.keys(fileSchemas) as FileKind[]).map(kind => {
    const json = { $schema: 'https://json-schema.org/draft/2020-12/schema', ...inputSchema(kind) }
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
