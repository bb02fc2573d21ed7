import { Argument, Command, Option } from 'commander'
import type { GlobalOptions, Io } from './io.ts'
import type { Output } from './output.ts'

/** What an action is given. */
export interface Call<Options = Record<string, never>> {
  readonly io: Io
  readonly out: Output
  readonly args: readonly (string | undefined)[]
  /** The rest of the arguments, where a command takes many. */
  readonly rest: readonly string[]
  readonly options: Options & GlobalOptions
}

/** Resolves with the exit status, 0 unless it says. */
export type Action = (call: Call<never>) => Promise<number | void>

/** What completes a word: names come from the site, the server or the data directory, files from the shell. */
export type Completes = 'nodes' | 'groups' | 'images' | 'recipes' | 'modules' | 'files' | 'directories'

export interface ArgumentSpec {
  /** '<nodes>', '[path]', '[nodes...]' */
  readonly name: string
  readonly about: string
  readonly completes?: Completes | undefined
  readonly choices?: readonly string[]
}

export interface OptionSpec {
  readonly flags: string
  readonly about: string
  readonly default?: string | boolean
  readonly choices?: readonly string[]
  readonly completes?: Completes
}

/** One command: help, completion, man page and reference are all drawn from this. */
export interface CommandSpec {
  readonly name: string
  readonly about: string
  readonly details?: string
  readonly args?: readonly ArgumentSpec[]
  readonly options?: readonly OptionSpec[]
  /** Lines to type. */
  readonly examples?: readonly string[]
  /** Loaded only when the command runs: help and completion stay quick. */
  readonly action?: () => Promise<Action>
  readonly commands?: readonly CommandSpec[]
  readonly hidden?: boolean
  /** It takes care of Ctrl-C itself, because it has something to clean up; others just end. */
  readonly stopsItself?: boolean
}

/** Runs the action of a command that was typed. */
export type Run = (action: Action, command: Command, spec: CommandSpec) => Promise<void>

export function buildCommand(spec: CommandSpec, run: Run): Command {
  const command = new Command(spec.name)
    .summary(spec.about)
    .description([spec.about, spec.details].filter(Boolean).join('\n\n'))
  for (const { name, about, choices } of spec.args ?? []) {
    const argument = new Argument(name, about)
    command.addArgument(choices === undefined ? argument : argument.choices(choices))
  }
  for (const option of spec.options ?? []) command.addOption(buildOption(option))
  const examples = spec.examples ?? (spec.commands ?? []).flatMap(child => child.examples?.[0] ?? [])
  if (examples.length > 0) command.addHelpText('after', `\nExamples:\n${examples.map(line => `  ${line}`).join('\n')}`)
  for (const child of spec.commands ?? [])
    command.addCommand(buildCommand(child, run), { hidden: child.hidden === true })
  const load = spec.action
  if (load !== undefined) command.action(async () => run(await load(), command, spec))
  return command
}

export function buildOption({ flags, about, choices, default: value }: OptionSpec): Option {
  const option = new Option(flags, about)
  if (choices !== undefined) option.choices(choices)
  if (value !== undefined) option.default(value)
  return option
}
