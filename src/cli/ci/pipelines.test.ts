import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { exec } from '../../lib/exec.ts'
import { commands } from '../spec.ts'
import { leaves } from '../manual.ts'
import { PIPELINES } from './pipelines.ts'

test('the example site carries the one of GitLab', async () => {
  const file = fileURLToPath(new URL('../../../examples/site/.gitlab-ci.yml', import.meta.url))
  expect(await readFile(file, 'utf8')).toBe(PIPELINES.gitlab.text)
})

/** What a linter of its schema says to a pipeline of GitLab; it runs nothing and asks nobody. */
async function lint(text: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'muster-pipeline-'))
  await writeFile(join(dir, '.gitlab-ci.yml'), text)
  const git = (...words: string[]): Promise<unknown> => exec('git', words, { cwd: dir })
  await git('init', '--quiet')
  await git('add', '.')
  await git('-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', 'commit', '--quiet', '--message', 'Pipeline')
  await git('remote', 'add', 'origin', 'git@git.example.org:group/site.git')
  const linter = fileURLToPath(new URL('../../../node_modules/.bin/gitlab-ci-local', import.meta.url))
  let said = ''
  const onOutput = (chunk: Buffer): void => void (said += chunk.toString('utf8'))
  const { exitCode } = await exec(linter, ['--list'], { onOutput, cwd: dir, allow: [1] })
  await rm(dir, { recursive: true })
  return `${exitCode} ${/json schema validated|chema .*|must have .*/.exec(said)?.[0]}`
}

test('a linter of the schema of GitLab accepts it', async () => {
  expect(await lint(PIPELINES.gitlab.text)).toBe('0 json schema validated')
})

test('and would not accept any', async () => {
  expect(await lint(PIPELINES.gitlab.text.replace('  script:', '  scirpt:'))).toBe('1 must have script specified')
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
