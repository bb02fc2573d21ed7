import type { Scalar } from './tree.ts'

/**
 * What a plain (unquoted) scalar means in the YAML 1.2 core schema: `8` is a number, `0o10` and `0x8` too, `~` is null,
 * `yes` and `1.2.3` are strings. The patterns are those of the `yaml` package, so that both readers agree.
 */
export function plainValue(source: string): Scalar {
  if (!MAY_BE_SPECIAL.test(source)) return source
  if (NULL.test(source)) return null
  if (BOOLEAN.test(source)) return source.startsWith('t') || source.startsWith('T')
  if (OCTAL.test(source)) return Number.parseInt(source.slice(2), 8)
  if (DECIMAL.test(source)) return Number.parseInt(source, 10)
  if (HEXADECIMAL.test(source)) return Number.parseInt(source.slice(2), 16)
  if (INFINITE.test(source)) return source.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  if (NOT_A_NUMBER.test(source)) return Number.NaN
  if (FLOAT.test(source)) return Number.parseFloat(source)
  return source
}

/** Most values are words: one test sends them on their way. */
const MAY_BE_SPECIAL = /^(?:[-+.0-9]|[~nNtTfF](?:.{3,4})?$)/
const NULL = /^(?:~|[Nn]ull|NULL)$/
const BOOLEAN = /^(?:[Tt]rue|TRUE|[Ff]alse|FALSE)$/
const OCTAL = /^0o[0-7]+$/
const DECIMAL = /^[-+]?[0-9]+$/
const HEXADECIMAL = /^0x[0-9a-fA-F]+$/
const INFINITE = /^[-+]?\.(?:inf|Inf|INF)$/
const NOT_A_NUMBER = /^(?:\.nan|\.NaN|\.NAN)$/
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/
