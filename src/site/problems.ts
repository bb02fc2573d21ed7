import { MusterError } from '../lib/errors.ts'
import { fold } from '../lib/nodeset/index.ts'

/** Something wrong with the site, at its place: `nodes.yaml:14:9: interfaces.prov.mac: is not a MAC address`. */
export interface Problem {
  readonly file: string
  readonly line: number
  readonly column: number
  /** Dotted path of the value, when the problem is about one. */
  readonly path?: string
  /** The nodes it was found on; several with the same problem become one line. */
  readonly nodes?: readonly string[]
  readonly message: string
}

export function formatProblem(problem: Problem): string {
  const nodes = problem.nodes === undefined ? undefined : fold(problem.nodes)
  const subject = [nodes, problem.path].filter(part => part !== undefined && part !== '').join('.')
  return [`${problem.file}:${problem.line}:${problem.column}`, subject, problem.message]
    .filter(part => part !== '')
    .join(': ')
}

/**
 * In file order, each once. The same problem of the same value on many nodes becomes one, told with the words of the
 * first: the messages may differ in what has digits in it, such as the address.
 */
export function tidyProblems(problems: readonly Problem[]): Problem[] {
  const byPlace = new Map<string, Problem & { nodes?: string[] }>()
  for (const problem of problems) {
    const what = problem.nodes === undefined ? problem.message : problem.message.replaceAll(/\S*\d\S*/g, '#')
    const key = [problem.file, problem.line, problem.column, problem.path, what].join('\0')
    const seen = byPlace.get(key)
    if (seen === undefined)
      byPlace.set(key, { ...problem, ...(problem.nodes && { nodes: [...problem.nodes] }) } as Problem & {
        nodes?: string[]
      })
    else for (const node of problem.nodes ?? []) seen.nodes?.push(node)
  }
  return [...byPlace.values()].sort(
    (a, b) =>
      a.file.localeCompare(b.file) || a.line - b.line || a.column - b.column || a.message.localeCompare(b.message),
  )
}

export function siteInvalid(problems: readonly Problem[], hint?: string): MusterError {
  const count = problems.length === 1 ? '1 error' : `${problems.length} errors`
  return new MusterError('SITE_INVALID', `the site has ${count}`, {
    details: problems.map(formatProblem),
    ...(hint !== undefined && { hint }),
  })
}
