import { describe, expect, it, test } from 'vitest'
import type { CommandSpec, OptionSpec } from './define.ts'
import { leaves } from './manual.ts'
import { buildProgram } from './run.ts'
import { commands, globalOptions } from './spec.ts'
import { memoryIo, run } from './testing.ts'

/** Every command, groups of commands and hidden ones included. */
function* every(specs: readonly CommandSpec[], path: readonly string[] = []): Generator<Entry> {
  for (const spec of specs) {
    const here = [...path, spec.name]
    yield { name: here.join(' '), path: here, spec }
    yield* every(spec.commands ?? [], here)
  }
}
interface Entry {
  readonly name: string
  readonly path: readonly string[]
  readonly spec: CommandSpec
}
const all = [...every(commands)]
const typed = [...leaves(commands)]
const examples = typed.flatMap(({ name, spec }) => (spec.examples ?? []).map(line => ({ name, line })))

describe.each(all)('$name', ({ path, spec }) => {
  it('says what it is about, in a sentence without its full stop', () => {
    expect(spec.about).toMatch(/^[A-Z].*[^.]$/)
  })

  it('is either a command or a group of commands', () => {
    expect(spec.action !== undefined).toBe(spec.commands === undefined)
  })

  it('describes every argument and option', () => {
    for (const { about } of [...(spec.args ?? []), ...(spec.options ?? [])]) expect(about).toMatch(/\S.*[^.]$/)
  })

  it('has --help', async () => {
    const { status, stdout, stderr } = await run([...path, '--help'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const rest = spec.commands === undefined ? '' : ' [options] [command]'
    expect(stdout.split('\n', 1)[0]).toMatch(
      new RegExp(`^Usage: muster ${path.join(' ')}${rest.replaceAll(/[[\]]/g, String.raw`\$&`)}`),
    )
    expect(unfolded(stdout)).toContain(unfolded(spec.about))
    for (const line of spec.details?.split('\n') ?? []) expect(unfolded(stdout)).toContain(unfolded(line))
    for (const { flags } of [...(spec.options ?? []), ...globalOptions]) expect(stdout).toContain(`  ${flags} `)
    for (const line of spec.examples ?? []) expect(stdout).toContain(`\n  ${line}\n`)
    for (const child of spec.commands ?? []) expect(stdout).toMatch(new RegExp(`^  ${child.name} `, 'm'))
  })
})

describe('examples', () => {
  test.each(typed)('$name has some', ({ name, spec }) => {
    expect(spec.examples ?? []).not.toEqual([])
    for (const line of spec.examples ?? []) expect(line).toContain(name)
  })

  test.each(all.filter(({ spec }) => spec.commands !== undefined))('$name --help shows some', async ({ path }) => {
    const { stdout } = await run([...path, '--help'])
    expect(stdout).toMatch(/\nExamples:\n {2}\S/)
  })

  test.each(examples)('parses: $line', async ({ name, line }) => {
    const { command, words } = await parsed(line)
    expect(command).toBe(name)
    expect(words.length).toBeGreaterThan(0)
  })

  // Unquoted, zsh says "no matches found", and bash puts the name of a file there where one matches:
  // in a site, `--kind site.*` becomes `--kind site.yaml`.
  test.each(examples)('can be pasted into any shell: $line', ({ line }) => {
    expect(unquoted(line)).not.toMatch(/[[\]*?]/)
  })
})

const used = (flags: string): string[] => flags.split(/[ ,]+/).filter(word => word.startsWith('-'))

describe('options', () => {
  test.each(typed)('$name has none that is also a global one', ({ spec }) => {
    const globals = new Set(['-h', '--help', '-V', '--version', ...globalOptions.flatMap(({ flags }) => used(flags))])
    const own = (spec.options ?? []).flatMap(({ flags }) => used(flags))
    expect(own.filter(flag => globals.has(flag))).toEqual([])
    expect(new Set(own).size).toBe(own.length)
  })

  it('mean the same and look the same everywhere', () => {
    const byFlag = new Map<string, Set<string>>()
    for (const { flags } of typed.flatMap(({ spec }) => spec.options ?? []))
      for (const flag of used(flags)) byFlag.set(flag, (byFlag.get(flag) ?? new Set()).add(flags))
    for (const [, spellings] of byFlag) expect([...spellings]).toHaveLength(1)
  })

  test.each(
    [...globalOptions, ...typed.flatMap(({ spec }) => spec.options ?? [])].filter(
      (option): option is OptionSpec & { choices: readonly string[]; default: string } =>
        option.choices !== undefined && option.default !== undefined,
    ),
  )('$flags: the default is one of the choices', ({ choices, default: value }) => {
    expect(choices).toContain(value)
  })
})

/** A line as written, however wide the terminal was taken to be. */
const unfolded = (text: string): string => text.replaceAll(/\s+/g, ' ')

/** The command an example runs: parsed as the real thing would, but without running it. */
async function parsed(line: string): Promise<{ command: string; words: string[] }> {
  const words = musterWords(line)
  let command = ''
  const io = memoryIo()
  const program = buildProgram(io, async (_, called) => {
    const path: string[] = []
    for (let at: typeof called | null = called; at !== null; at = at.parent) path.unshift(at.name())
    command = path.join(' ')
  })
  await program.parseAsync(words.slice(1), { from: 'user' }).catch((error: unknown) => {
    throw new Error(`${line}\n${io.said.stderr}`, { cause: error })
  })
  return { command, words }
}

/** What the shell would give to muster: without pipes, redirections and quotes. */
function musterWords(line: string): string[] {
  const stages = line.replace(/^source <\((.*)\)$/, '$1').split(' | ')
  const part = stages.find(stage => stage.startsWith('muster ')) ?? ''
  return [...part.replace(/ [<>] \S+/, '').matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"]+)+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'),
  )
}

const unquoted = (line: string): string => line.replaceAll(/'[^']*'|"[^"]*"/g, '')
