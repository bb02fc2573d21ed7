import { Command, CommanderError } from 'commander'
import { type ErrorCode, MusterError } from '../lib/errors.ts'
import { VERSION } from '../version.ts'
import { type Run, buildCommand, buildOption } from './define.ts'
import type { GlobalOptions, Io } from './io.ts'
import { Output } from './output.ts'
import { commands, globalOptions } from './spec.ts'

/** Runs one command line; resolves with its exit status. Documented in docs/reference/cli.md. */
export async function runCli(argv: readonly string[], io: Io): Promise<number> {
  let status = 0
  const program = buildProgram(io, async (action, command, spec) => {
    const options = command.optsWithGlobals<GlobalOptions>()
    const rest = command.processedArgs.filter(Array.isArray).flat() as string[]
    const args = command.processedArgs.filter(arg => !Array.isArray(arg)) as (string | undefined)[]
    const out = new Output(io, options.json === true ? 'json' : options.output)
    const work = action({ io, out, args, rest, options: options as never })
    status = (await (spec.stopsItself === true ? work : Promise.race([work, interruption(io.interrupted)]))) ?? 0
  })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return status
  } catch (error) {
    return report(error, io, argv.includes('--debug'))
  }
}

export function buildProgram(io: Pick<Io, 'stdout' | 'stderr'>, run: Run): Command {
  const program = new Command('muster')
    .description('Turns racks of bare machines into a working HPC cluster and keeps it that way.')
    .version(VERSION, '-V, --version')
    .configureHelp({ showGlobalOptions: true })
  for (const option of globalOptions) program.addOption(buildOption(option))
  for (const spec of commands) program.addCommand(buildCommand(spec, run), { hidden: spec.hidden === true })
  program.addHelpText('after', '\nBegin with: muster site init DIR. Every command has --help with examples.')
  forEachCommand(program, command => {
    command
      .exitOverride()
      .configureOutput({ writeOut: text => void io.stdout.write(text), writeErr: text => void io.stderr.write(text) })
    command.showHelpAfterError(`hint:  see ${fullName(command)} --help`)
    if (command !== program) command.configureHelp({ showGlobalOptions: true }).helpCommand(false)
  })
  return program
}

/** Resolves with the exit status of a command that was interrupted. */
const interruption = (signal: AbortSignal): Promise<number> =>
  new Promise(resolve => signal.addEventListener('abort', () => resolve(INTERRUPTED), { once: true }))

const INTERRUPTED = 130

export function forEachCommand(command: Command, visit: (command: Command) => void): void {
  visit(command)
  for (const child of command.commands) forEachCommand(child, visit)
}

export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`
}

const EXIT_STATUS: Partial<Record<ErrorCode, number>> = {
  USAGE: 2,
  SERVER_UNREACHABLE: 3,
  TOKEN_MISSING: 4,
  TOKEN_INVALID: 4,
  TOKEN_EXPIRED: 4,
  FORBIDDEN: 4,
}

function report(error: unknown, io: Io, debug: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  // Ctrl-C at a prompt is not a signal but an answer.
  const atPrompt = error instanceof Error && error.name === 'AbortError'
  if (io.interrupted.aborted || atPrompt) return INTERRUPTED
  const known =
    error instanceof MusterError
      ? error
      : new MusterError('INTERNAL', error instanceof Error ? error.message : String(error), {
          hint: 'run it again with --debug to see more',
        })
  for (const detail of known.details) io.stderr.write(`${detail}\n`)
  io.stderr.write(`error: ${known.message}\n`)
  if (known.hint !== '') io.stderr.write(`hint:  ${known.hint}\n`)
  if (debug) io.stderr.write(`${(known.cause instanceof Error ? known.cause : known).stack ?? ''}\n`)
  return EXIT_STATUS[known.code] ?? 1
}
