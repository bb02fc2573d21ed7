import { describe, expect, it, test } from 'vitest'
import { type Candidates, candidates } from './candidates.ts'
import type { CommandSpec, OptionSpec } from './define.ts'
import { leaves } from './manual.ts'
import { commands, globalOptions } from './spec.ts'

const specs: readonly CommandSpec[] = [
  {
    name: 'node',
    about: 'nodes',
    commands: [
      {
        name: 'ls',
        about: 'list',
        args: [{ name: '[nodes]', about: 'which', completes: 'nodes' }],
        options: [
          { flags: '-l, --long', about: 'one a line' },
          { flags: '--file <path>', about: 'a file', completes: 'files' },
          { flags: '--level <level>', about: 'a level', choices: ['high', 'low'] },
          { flags: '-m, --message <text>', about: 'anything' },
        ],
      },
      {
        name: 'set',
        about: 'set',
        args: [
          { name: '<group>', about: 'which', completes: 'groups' },
          { name: '[settings...]', about: 'what' },
        ],
      },
      { name: 'secret', about: 'unseen', hidden: true },
    ],
  },
  { name: 'fold', about: 'fold', args: [{ name: '[nodes...]', about: 'which', completes: 'nodes' }] },
  { name: 'completion', about: 'script', args: [{ name: '<shell>', about: 'which', choices: ['bash', 'zsh'] }] },
]
const globals: readonly OptionSpec[] = [
  { flags: '-o, --output <format>', about: 'how', choices: ['table', 'json', 'yaml'] },
  { flags: '--debug', about: 'more' },
]
const found = (line: string): Candidates => candidates(line.split(' ').slice(1), specs, globals)
const words = (line: string): string[] => found(line).words.map(({ word }) => word)

describe('candidates', () => {
  test.each<[line: string, words: string[]]>([
    ['muster ', ['node', 'fold', 'completion']],
    ['muster fo', ['fold']],
    ['muster x', []],
    ['muster node ', ['ls', 'set']],
    ['muster node l', ['ls']],
    ['muster node se', ['set']],
    ['muster nosuch ', []],
    ['muster node nosuch ', []],
    ['muster completion ', ['bash', 'zsh']],
    ['muster completion b', ['bash']],
    ['muster completion bash ', []],
    ['muster -', ['--output', '--debug']],
    ['muster --de', ['--debug']],
    ['muster node ls --l', ['--long', '--level']],
    ['muster node ls --', ['--long', '--file', '--level', '--message', '--output', '--debug']],
    ['muster node set --', ['--output', '--debug']],
    // The value of an option.
    ['muster -o ', ['table', 'json', 'yaml']],
    ['muster --output j', ['json']],
    ['muster node ls --level ', ['high', 'low']],
    ['muster node ls --message ', []],
    // An option and its value are no arguments, and do not hide the command.
    ['muster -o json no', ['node']],
    ['muster --debug node l', ['ls']],
    ['muster node -o json l', ['ls']],
  ])('%s', (line, expected) => {
    expect(words(line)).toEqual(expected)
  })

  test.each<[line: string, names: Candidates['names']]>([
    ['muster node ls ', 'nodes'],
    ['muster node ls n0', 'nodes'],
    ['muster node ls --long ', 'nodes'],
    ['muster node ls --level high ', 'nodes'],
    ['muster node ls -m text n0', 'nodes'],
    ['muster node ls n001 ', undefined],
    ['muster node ls --file ', 'files'],
    ['muster node set ', 'groups'],
    ['muster node set compute ', undefined],
    ['muster fold a b c ', 'nodes'],
    // A node may be called as a command is.
    ['muster fold node ', 'nodes'],
    ['muster node ls -- n0', 'nodes'],
  ])('%s names %s', (line, names) => {
    expect(found(line).names).toBe(names)
  })

  it('says what a word is about', () => {
    expect(found('muster node ').words).toEqual([
      { word: 'ls', about: 'list' },
      { word: 'set', about: 'set' },
    ])
    expect(found('muster --de').words).toEqual([{ word: '--debug', about: 'more' }])
  })

  it('has nothing to say about no words at all', () => {
    expect(candidates([], specs, globals).words.map(({ word }) => word)).toEqual(['node', 'fold', 'completion'])
  })
})

describe('of the real commands', () => {
  const all = [...leaves(commands)]

  test.each(all)('$name can be typed with nothing but completion', ({ name }) => {
    const [, ...path] = name.split(' ')
    for (const [depth, word] of path.entries()) {
      const here = candidates([...path.slice(0, depth), ''], commands, globalOptions).words
      expect(here.map(one => one.word)).toContain(word)
    }
  })

  test.each(all.flatMap(({ name, spec }) => (spec.options ?? []).map(option => ({ name, option }))))(
    '$name completes $option.flags',
    ({ name, option }) => {
      const [, ...path] = name.split(' ')
      const long = /--[\w-]+/.exec(option.flags)?.[0] ?? ''
      const here = candidates([...path, long], commands, globalOptions).words
      expect(here).toContainEqual({ word: long, about: option.about })
    },
  )

  it('hides what only the completion scripts call', () => {
    expect(candidates([''], commands, globalOptions).words.map(({ word }) => word)).not.toContain('complete')
  })
})
