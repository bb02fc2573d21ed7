import type { ArgumentSpec, CommandSpec, Completes, OptionSpec } from './define.ts'

/** What could stand where the last word is being typed: fixed words, or a kind of name that has to be looked up. */
export interface Candidates {
  readonly words: readonly { readonly word: string; readonly about: string }[]
  readonly names?: Completes
}

/** candidates(['node', 'sh'], …) → show. The last word is the one being typed, possibly empty. */
export function candidates(
  words: readonly string[],
  commands: readonly CommandSpec[],
  globals: readonly OptionSpec[],
): Candidates {
  const typed = words.at(-1) ?? ''
  let level: readonly CommandSpec[] = commands
  let command: CommandSpec | undefined
  let argument = 0
  let pending: OptionSpec | undefined
  for (const word of words.slice(0, -1)) {
    if (pending !== undefined) pending = undefined
    else if (word.startsWith('-')) pending = takesValue(optionNamed(word, command, globals))
    else {
      const next = level.find(one => one.name === word)
      if (next === undefined) argument++
      else [command, level, argument] = [next, next.commands ?? [], 0]
    }
  }
  if (pending !== undefined) return fromSpec(pending, typed)
  if (typed.startsWith('-'))
    return { words: [...(command?.options ?? []), ...globals].map(flagOf).filter(flag => flag.word.startsWith(typed)) }
  if (level.length > 0 && argument === 0) {
    return {
      words: level
        .filter(one => one.hidden !== true && one.name.startsWith(typed))
        .map(one => ({ word: one.name, about: one.about })),
    }
  }
  const spec = argumentAt(command?.args ?? [], argument)
  return spec === undefined ? { words: [] } : fromSpec(spec, typed)
}

function argumentAt(args: readonly ArgumentSpec[], position: number): ArgumentSpec | undefined {
  const last = args.at(-1)
  return args[position] ?? (last?.name.includes('...') === true ? last : undefined)
}

function fromSpec({ choices, completes }: ArgumentSpec | OptionSpec, typed: string): Candidates {
  const words = (choices ?? []).filter(word => word.startsWith(typed)).map(word => ({ word, about: '' }))
  return { words, ...(completes !== undefined && { names: completes }) }
}

function optionNamed(
  word: string,
  command: CommandSpec | undefined,
  globals: readonly OptionSpec[],
): OptionSpec | undefined {
  return [...(command?.options ?? []), ...globals].find(option => option.flags.split(/[ ,]+/).includes(word))
}

const takesValue = (option: OptionSpec | undefined): OptionSpec | undefined =>
  option?.flags.includes('<') === true ? option : undefined

const flagOf = ({ flags, about }: OptionSpec): { word: string; about: string } => ({
  word: /--[\w-]+/.exec(flags)?.[0] ?? flags,
  about,
})
