import { describe, expect, it, test } from 'vitest'
import type { CommandSpec, OptionSpec } from './define.ts'
import { ENVIRONMENT, EXIT_CODES, leaves, renderMan, renderReference, usage } from './manual.ts'
import { commands, globalOptions } from './spec.ts'

const action = async () => async (): Promise<void> => {}
const specs: readonly CommandSpec[] = [
  {
    name: 'node',
    about: 'Nodes',
    commands: [
      {
        name: 'ls',
        about: 'List nodes',
        details: 'Alike ones\n.are folded',
        args: [{ name: '[nodes]', about: 'node set' }],
        options: [{ flags: '-l, --long', about: 'one line each' }],
        examples: ["muster node ls 'n[1-2]'", String.raw`muster node ls -s '\n' "a b"`],
        action,
      },
    ],
  },
  { name: 'status', about: 'Show the server', examples: ['muster status'], action },
  { name: 'complete', about: 'Unseen', hidden: true, action },
]
const globals: readonly OptionSpec[] = [
  { flags: '-o, --output <format>', about: 'how', choices: ['table', 'json'], default: 'table' },
]

describe('leaves', () => {
  it('are the commands that can be typed, with their whole name', () => {
    expect([...leaves(specs)].map(({ name }) => name)).toEqual(['muster node ls', 'muster status'])
  })
})

test.each([
  ['muster node ls', specs[0]?.commands?.[0], 'muster node ls [nodes] [options]'],
  ['muster status', specs[1], 'muster status'],
])('usage of %s', (name, spec, expected) => {
  expect(spec && usage(name, spec)).toBe(expected)
})

describe('the manual page', () => {
  const page = renderMan(specs, globals, '1.2.3')
  const [head = '', ...sections] = page.split(/^(?=\.SH )/m)
  const section = (name: string): string => sections.find(text => text.startsWith(`.SH ${name}\n`)) ?? ''

  it('has the sections man pages have, in their order', () => {
    expect(head).toBe('.TH MUSTER 1 "" "muster 1.2.3" "User Commands"\n')
    expect(sections.map(text => text.split('\n', 1)[0])).toEqual([
      '.SH NAME',
      '.SH SYNOPSIS',
      '.SH DESCRIPTION',
      '.SH OPTIONS',
      '.SH COMMANDS',
      '.SH ENVIRONMENT',
      '.SH EXIT STATUS',
    ])
  })

  it('writes a command with all that belongs to it', () => {
    expect(section('COMMANDS').slice('.SH COMMANDS\n'.length)).toBe(String.raw`.SS "muster node ls [nodes] [options]"
List nodes.
.PP
Alike ones
.br
\&.are folded
.TP
.I [nodes]
node set
.TP
.B \-l, \-\-long
one line each
.PP
Examples:
.PP
.nf
.RS
muster node ls 'n[1\-2]'
muster node ls \-s '\en' \(dqa b\(dq
.RE
.fi
.SS "muster status"
Show the server.
.PP
Examples:
.PP
.nf
.RS
muster status
.RE
.fi
`)
  })

  it('says which words an option takes', () => {
    expect(section('OPTIONS')).toContain('table')
    expect(section('OPTIONS')).toContain('json')
  })

  it('tells of every variable and every exit status', () => {
    for (const [name, about] of ENVIRONMENT) expect(section('ENVIRONMENT')).toContain(`.B ${name}\n${about}\n`)
    for (const [code] of EXIT_CODES) expect(section('EXIT STATUS')).toContain(`.B ${code}\n`)
  })
})

describe('the reference page', () => {
  it('is Markdown', () => {
    expect(renderReference(specs, globals)).toBe(`# Commands

## Options of every command

| | |
|---|---|
| \`-o, --output <format>\` | how; one of table, json; default \`table\` |

## muster node ls

    muster node ls [nodes] [options]

List nodes.

Alike ones
.are folded

| | |
|---|---|
| \`[nodes]\` | node set |
| \`-l, --long\` | one line each |

\`\`\`sh
muster node ls 'n[1-2]'
muster node ls -s '\\n' "a b"
\`\`\`

## muster status

    muster status

Show the server.

\`\`\`sh
muster status
\`\`\`

## Environment

| | |
|---|---|
${ENVIRONMENT.map(([name, about]) => `| \`${name}\` | ${about} |`).join('\n')}

## Exit status

| | |
|---|---|
${EXIT_CODES.map(([code, about]) => `| \`${code}\` | ${about} |`).join('\n')}
`)
  })

  it('has no bar that would begin a new column', () => {
    const rows = renderReference(commands, globalOptions)
      .split('\n')
      .filter(line => line.startsWith('| '))
    for (const row of rows) expect(row.replaceAll('\\|', '').split('|')).toHaveLength(4)
  })
})
