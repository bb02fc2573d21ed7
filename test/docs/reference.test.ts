import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { exec } from '../../src/lib/exec.ts'

const root = new URL('../..', import.meta.url).pathname

test('the pages drawn from the sources are up to date', async () => {
  const { exitCode } = await exec(process.execPath, ['scripts/generate-docs.ts', '--check'], { cwd: root })
  expect(exitCode).toBe(0)
})

test('every link between the documents leads somewhere', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...globSync('{docs,examples}/**/*.md', { cwd: root })]
  const broken = pages.flatMap(page => {
    const text = readFileSync(join(root, page), 'utf8')
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#]+)(#[^)]*)?\)/g)].map(match => match[1] ?? '')
    return targets
      .filter(target => globSync(normalize(join(root, dirname(page), target))).length === 0)
      .map(target => `${page} → ${target}`)
  })
  expect(broken).toEqual([])
})

test('the architecture page has the table that is enforced', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const folders = globSync('src/*/', { cwd: root }).map(folder => folder.replace(/^src\/|\/$/g, ''))
  for (const folder of folders) expect(page).toContain(`| \`${folder}/\` |`)
})
