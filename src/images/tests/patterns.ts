import type { Output } from './found.ts'
import { firstMatch, goRegExp } from './go-regexp.ts'

/**
 * Patterns that goss holds against each line of some output:
 *
 *     foo       some line has foo in it
 *     /fo+/     some line matches
 *     !foo      no line has foo in it        !/fo+/   no line matches
 *     \!foo     some line has !foo in it
 */
export interface Pattern {
  readonly pattern: unknown
  /** The line that should not be there. */
  readonly line?: string
  /** Why nobody can say. */
  readonly reason?: string
}

/** The ones that do not hold. */
export function failingPatterns(patterns: readonly unknown[], output: Output): Pattern[] {
  const { lines, cut } = output
  return patterns.flatMap((pattern): Pattern[] => {
    // Nothing at all may be asked for, also of output that is empty.
    if (pattern === '') return []
    const parsed = tryPattern(String(pattern))
    if (parsed === undefined) return [{ pattern, reason: 'is not a regular expression' }]
    const { inverse, find } = parsed
    const at = find(lines)
    if (at === undefined) return [{ pattern, reason: 'the expression takes too long' }]
    if (at >= 0) return inverse ? [{ pattern, line: lines[at] ?? '' }] : []
    if (cut) return [{ pattern, reason: 'not in the first MiB, and there is more' }]
    return inverse ? [] : [{ pattern }]
  })
}

interface Parsed {
  readonly inverse: boolean
  readonly find: (lines: readonly string[]) => number | undefined
}

/** Throws a SyntaxError for an expression that is none. */
export function parsePattern(text: string): Parsed {
  const inverse = text.startsWith('!')
  const rest = inverse ? text.slice(1) : text
  if (rest.length >= 2 && rest.startsWith('/') && rest.endsWith('/')) {
    const expression = goRegExp(rest.slice(1, -1))
    return { inverse, find: lines => firstMatch(expression, lines) }
  }
  const literal = /^\\[!/\\]/.test(rest) ? rest.slice(1) : rest
  return { inverse, find: lines => lines.findIndex(line => line.includes(literal)) }
}

/** Nearly all have been tried when the file was read; not those on text that only a setting makes output. */
function tryPattern(text: string): Parsed | undefined {
  try {
    return parsePattern(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
