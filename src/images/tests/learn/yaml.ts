import { type LearntGroup, shown } from './learnt.ts'

/** A file of tests: each group with a comment that says where it came from, the same for the same facts. */
export function testFileOf(title: string, groups: readonly LearntGroup[], where?: string): string {
  const full = groups.filter(({ checks }) => checks.length > 0)
  const kinds = [...new Set(full.map(({ kind }) => kind))]
  return [
    `# ${title}`,
    '# A first set of checks: take out what you do not mean, and add what is missing.',
    ...(where === undefined ? [] : [`where: ${where}`]),
    ...kinds.flatMap(kind => ['', `${kind}:`, ...linesOf(full.filter(group => group.kind === kind))]),
    '',
  ].join('\n')
}

/** A name stands once in a file: the first group that has it keeps it. */
function linesOf(groups: readonly LearntGroup[]): string[] {
  const seen = new Set<string>()
  return groups.flatMap(({ comment, checks }) => {
    const fresh = checks.filter(({ name }) => !seen.has(name))
    for (const { name } of fresh) seen.add(name)
    return [`  # ${comment}`, ...fresh.map(({ name, attributes }) => `  ${scalar(name)}: ${flow(attributes)}`)]
  })
}

export const titleOf = (from: string, system: string): string =>
  `Learnt by muster image learn from ${shown(from)}${system === '' ? '' : ` (${shown(system)})`}.`

/** { installed: true, versions: ["1.2-3"] } */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `{ ${Object.entries(value)
      .map(([key, item]) => `${key}: ${flow(item)}`)
      .join(', ')} }`
  return typeof value === 'string' ? scalar(value) : String(value)
}

/** What YAML would take for something else than text. */
const WORDS = /^(true|false|null|yes|no|on|off|y|n)$/i

/** Bare where nobody can misread it; a text of JSON is one of YAML too. */
const scalar = (text: string): string =>
  /^([A-Za-z_/][\w./+-]*|(tcp|udp)6?:\d+)$/.test(text) && !WORDS.test(text) ? text : JSON.stringify(text)
