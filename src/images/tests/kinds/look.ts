import type { Check } from '../check.ts'
import { Unknown } from '../found.ts'
import { type Subject, type SubjectOptions, type SubjectResult, TIMED_OUT } from '../subject.ts'
import { KINDS } from '../syntax.ts'

/** Attribute → what was found: text, numbers, lists, Output, or Unknown. Of the attributes that are asked for only. */
export type Observed = Record<string, unknown>
export type Observe = (subject: Subject, check: Check) => Promise<Observed>

/** What is looked at: the name of the check unless a setting says otherwise. */
export function targetOf({ kind, name, settings }: Check): string {
  const { target } = KINDS[kind]
  const given = target === undefined ? undefined : settings[target]
  return typeof given === 'string' && given !== '' ? given : name
}

/** Through a shell, which says with 127 that a program is not there; values are arguments, never part of the script. */
export function shell(
  subject: Subject,
  script: string,
  args: readonly string[] = [],
  options?: SubjectOptions,
): Promise<SubjectResult> {
  return subject.run(['/bin/sh', '-c', script, 'sh', ...args], options)
}

/** Why a command gave no answer. */
export function trouble({ exitCode, stdout, stderr }: SubjectResult, tool: string): Unknown {
  if (exitCode === 127) return new Unknown(`there is no ${tool} in the image to find out with`)
  if (exitCode === TIMED_OUT) return new Unknown('took too long')
  const said = [stderr, stdout].map(text => text.toString('utf8').trim()).find(text => text !== '')
  return new Unknown(said?.slice(0, 200) ?? `${tool} failed with exit status ${exitCode}`)
}

/** The text of a small file, nothing where there is none. */
export async function readText(subject: Subject, path: string): Promise<string | Unknown | undefined> {
  const result = await shell(subject, '[ -e "$1" ] || exit 3; cat < "$1"', [path])
  if (result.exitCode === 3) return undefined
  return result.exitCode === 0 ? result.stdout.toString('utf8') : trouble(result, 'cat')
}

/** Only those that the check asks about; what takes a look of its own is not looked at otherwise. */
export async function gather(check: Check, sources: Readonly<Record<string, unknown>>): Promise<Observed> {
  const observed: Observed = {}
  for (const attribute of Object.keys(check.expected)) {
    const source = sources[attribute]
    observed[attribute] = typeof source === 'function' ? await (source as () => unknown)() : source
  }
  return observed
}

/** Where nothing can be found out, nor can any of it. */
export const unknown = (check: Check, why: Unknown): Observed =>
  Object.fromEntries(Object.keys(check.expected).map(attribute => [attribute, why]))

export const asks = (check: Check, ...attributes: readonly string[]): boolean =>
  attributes.some(attribute => Object.hasOwn(check.expected, attribute))

/** A setting of a certain type; what the file says has been checked before. */
export const textSetting = (check: Check, name: string): string | undefined => {
  const value = check.settings[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

export const timeoutOf = (check: Check, otherwise: number): number => {
  const { timeout } = check.settings
  return typeof timeout === 'number' ? timeout : otherwise
}
