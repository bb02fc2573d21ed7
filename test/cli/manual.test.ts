import { beforeAll, describe, expect, it, test } from 'vitest'
import { ENVIRONMENT, EXIT_CODES, leaves, usage } from '../../src/cli/manual.ts'
import { commands, globalOptions } from '../../src/cli/spec.ts'
import { type Ran, muster, run } from './testing.ts'

/** The manual page as `man` shows it. */
let page: Ran
let text: string
beforeAll(async () => {
  const { stdout } = await muster('man')
  page = await run('man', ['--local-file', '--warnings', '--encoding=UTF-8', '-'], {
    input: stdout,
    env: { MANWIDTH: '100', MAN_KEEP_FORMATTING: '' },
  })
  text = unfolded(page.stdout)
})

/** Lines are filled and words divided by man; what is there must be found all the same. */
const unfolded = (shown: string): string => shown.replaceAll(/‐\n\s*/g, '').replaceAll(/\s+/g, ' ')

it('is shown without a warning', () => {
  expect({ status: page.status, stderr: page.stderr }).toEqual({ status: 0, stderr: '' })
})

it('has its sections', () => {
  expect(page.stdout.match(/^[A-Z][A-Z ]+$/gm)).toEqual([
    'NAME',
    'SYNOPSIS',
    'DESCRIPTION',
    'OPTIONS',
    'COMMANDS',
    'ENVIRONMENT',
    'EXIT STATUS',
  ])
})

describe.each([...leaves(commands)])('$name', ({ name, spec }) => {
  it('is there with all it takes', () => {
    expect(text).toContain(` ${usage(name, spec)} ${unfolded(spec.about)}. `)
    for (const line of spec.details?.split('\n') ?? []) expect(text).toContain(unfolded(line))
    for (const { flags, about } of spec.options ?? []) expect(text).toContain(` ${flags} ${unfolded(about)} `)
    for (const { name: argument, about } of spec.args ?? []) expect(text).toContain(` ${argument} ${unfolded(about)} `)
  })

  it('has examples that can be copied as they stand', () => {
    for (const line of spec.examples ?? []) expect(page.stdout).toContain(`    ${line}\n`)
  })
})

test.each(globalOptions)('$flags is there', ({ flags, about }) => {
  expect(text).toContain(` ${flags} ${about}`)
})

test.each([...ENVIRONMENT, ...EXIT_CODES])('%s is there', (name, about) => {
  expect(text).toContain(` ${name} ${about}`)
})
