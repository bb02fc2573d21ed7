import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { commands } from '../spec.ts'
import { leaves } from '../manual.ts'
import { PIPELINES } from './pipelines.ts'

test('the example site carries the one of GitLab', async () => {
  const file = fileURLToPath(new URL('../../../examples/site/.gitlab-ci.yml', import.meta.url))
  expect(await readFile(file, 'utf8')).toBe(PIPELINES.gitlab.text)
})

test.each(Object.entries(PIPELINES))('that of %s calls a command there is, with options it has', (_, { text }) => {
  expect(parse(text)).toBeTypeOf('object')
  const called = [...text.matchAll(/muster (ci run)((?: [^>\n]+)?)/g)].find(([, , rest = '']) => rest.includes('--'))
  const command = [...leaves(commands)].find(({ name }) => name === `muster ${called?.[1]}`)
  const flags = (called?.[2] ?? '').match(/--[a-z-]+/g) ?? []
  const known = command?.spec.options?.map(option => option.flags.split(/[ ,]+/).find(word => word.startsWith('--')))
  expect(flags.length).toBeGreaterThan(0)
  for (const flag of flags.filter(one => one !== '--json')) expect(known).toContain(flag)
})
