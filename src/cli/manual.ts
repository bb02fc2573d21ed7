import type { CommandSpec, OptionSpec } from './define.ts'

export const EXIT_CODES = [
  ['0', 'success'],
  ['1', 'the command failed, or found what it looks for (mistakes in a site, a difference)'],
  ['2', 'the command line is wrong'],
  ['3', 'the server cannot be reached'],
  ['4', 'access was denied'],
  ['130', 'interrupted'],
] as const

export const ENVIRONMENT = [
  ['MUSTER_SERVER', 'URL or unix socket of the server'],
  ['MUSTER_TOKEN', 'token for the API'],
  ['MUSTER_SITE', 'directory of the site'],
  ['MUSTER_AGE_KEY_FILE', 'age key to open secrets with'],
  ['NO_COLOR', 'no colours'],
] as const

/** Every command that can be typed, with its full name. */
export function* leaves(
  commands: readonly CommandSpec[],
  prefix = 'muster',
): Generator<{ readonly name: string; readonly spec: CommandSpec }> {
  for (const spec of commands) {
    if (spec.hidden === true) continue
    const name = `${prefix} ${spec.name}`
    if (spec.action !== undefined) yield { name, spec }
    yield* leaves(spec.commands ?? [], name)
  }
}

export const usage = (name: string, spec: CommandSpec): string =>
  [name, ...(spec.args ?? []).map(arg => arg.name), ...(spec.options === undefined ? [] : ['[options]'])].join(' ')

/** The manual page, in troff's man macros. */
export function renderMan(commands: readonly CommandSpec[], globals: readonly OptionSpec[], version: string): string {
  const lines = [
    `.TH MUSTER 1 "" "muster ${version}" "User Commands"`,
    '.SH NAME',
    'muster \\- turns racks of bare machines into a working HPC cluster and keeps it that way',
    '.SH SYNOPSIS',
    '.B muster',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    'A cluster is described in plain YAML in git: the site. Muster checks it, explains for every node what it gets and why, and makes it the desired state.',
    '.SH OPTIONS',
    ...globals.flatMap(optionLines),
    '.SH COMMANDS',
  ]
  for (const { name, spec } of leaves(commands)) {
    lines.push(`.SS "${escape(usage(name, spec))}"`, text(`${spec.about}.`))
    if (spec.details !== undefined) lines.push('.PP', text(spec.details))
    for (const arg of spec.args ?? []) lines.push('.TP', `.I ${escape(arg.name)}`, text(arg.about))
    lines.push(...(spec.options ?? []).flatMap(optionLines))
    if (spec.examples !== undefined)
      lines.push('.PP', 'Examples:', '.PP', '.nf', '.RS', ...spec.examples.map(text), '.RE', '.fi')
  }
  lines.push('.SH ENVIRONMENT', ...ENVIRONMENT.flatMap(([name, about]) => ['.TP', `.B ${name}`, text(about)]))
  lines.push('.SH EXIT STATUS', ...EXIT_CODES.flatMap(([code, about]) => ['.TP', `.B ${code}`, text(about)]))
  return `${lines.join('\n')}\n`
}

/** The same as a page of the documentation. */
export function renderReference(commands: readonly CommandSpec[], globals: readonly OptionSpec[]): string {
  const lines = ['# Commands', '', '## Options of every command', '', ...tableRows(globals.map(optionRow))]
  for (const { name, spec } of leaves(commands)) {
    lines.push(`## ${name}`, '', `    ${usage(name, spec)}`, '', `${spec.about}.`, '')
    if (spec.details !== undefined) lines.push(...spec.details.split('\n'), '')
    const parts = [
      ...(spec.args ?? []).map(arg => [arg.name, arg.about] as const),
      ...(spec.options ?? []).map(optionRow),
    ]
    if (parts.length > 0) lines.push(...tableRows(parts))
    if (spec.examples !== undefined) lines.push('```sh', ...spec.examples, '```', '')
  }
  lines.push('## Environment', '', ...tableRows(ENVIRONMENT), '## Exit status', '', ...tableRows(EXIT_CODES))
  return `${lines.join('\n').trimEnd()}\n`
}

type Row = readonly [name: string, about: string]

const tableRows = (rows: readonly Row[]): string[] => [
  '| | |',
  '|---|---|',
  ...rows.map(([name, about]) => `| \`${name}\` | ${about} |`),
  '',
]

const optionRow = ({ flags, about, default: value, choices }: OptionSpec): Row => [
  flags,
  [
    about,
    choices && `one of ${choices.join(', ')}`,
    typeof value === 'string' && `default \`${value === ' ' ? '" "' : value}\``,
  ]
    .filter(Boolean)
    .join('; '),
]

const optionLines = ({ flags, about, choices, default: value }: OptionSpec): string[] => {
  const notes = [
    choices && `one of ${choices.join(', ')}`,
    typeof value === 'string' && `default ${JSON.stringify(value)}`,
  ]
  const known = notes.filter(note => typeof note === 'string')
  return ['.TP', `.B ${escape(flags)}`, text(known.length === 0 ? about : `${about} (${known.join('; ')})`)]
}

const escape = (words: string): string => words.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('"', '\\(dq')
/** A line that begins with a dot or a quote would be a command to troff. */
const text = (words: string): string =>
  escape(words)
    .split('\n')
    .map(line => (/^[.']/.test(line) ? `\\&${line}` : line))
    .join('\n.br\n')
