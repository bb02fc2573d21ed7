import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Files, directoryOf, format } from '../../site/testing.ts'
import { checkTestFolders } from './check-folders.ts'

const found = async (
  files: Files,
  recipes: readonly string[],
): Promise<{ readonly problems: string[]; readonly warnings: string[] }> => {
  const { problems, warnings } = await checkTestFolders(await directoryOf(files), new Set(recipes))
  return { problems: format(problems), warnings: format(warnings) }
}

describe('the tests of the images of a site', () => {
  test('have nothing wrong with them', async () => {
    const files = {
      'images/base/tests/a.yaml': 'file:\n  /etc/passwd: { exists: true }\n',
      'images/base/image.yaml': '',
      'images/none/image.yaml': '',
    }
    expect(await found(files, ['base', 'none'])).toEqual({ problems: [], warnings: [] })
  })

  test('have mistakes, those of all files of all images together', async () => {
    const files = {
      'images/base/tests/b.yaml': 'file:\n  /etc/x: { exits: true }\n',
      'images/base/tests/a.yaml': 'fiel: {}\nport:\n  tcp:22: { listening: true }\n',
      'images/compute/tests/a.yaml': 'user: [\n',
    }
    const { problems } = await found(files, ['base', 'compute'])
    expect(problems).toEqual([
      'images/base/tests/a.yaml:1:1: fiel: unknown resource — did you mean file?',
      'images/base/tests/a.yaml:3:13: port.tcp:22.listening: is of a system that runs: write where: container, or vm, at the top of the file',
      'images/base/tests/b.yaml:2:3: file./etc/x.exists: is missing',
      'images/base/tests/b.yaml:2:13: file./etc/x.exits: unknown attribute — did you mean exists?',
      expect.stringMatching(/^images\/compute\/tests\/a\.yaml:\d+:\d+: /),
    ])
  })

  test('of a folder that holds too much', async () => {
    const files = { 'images/base/tests/core': Buffer.alloc(2 ** 20 + 1) }
    expect((await found(files, ['base'])).problems).toEqual(['images/base/tests/core:1:1: is larger than 1 MiB'])
  })

  test('of no recipe are worth a word, and are not read', async () => {
    const files = { 'images/old/tests/a.yaml': 'fiel: {}\n', 'images/README': '' }
    expect(await found(files, [])).toEqual({
      problems: [],
      warnings: ['images/old/tests:1:1: nothing runs these tests: there is no recipe images/old/image.yaml'],
    })
  })

  test('in a folder that is empty are none', async () => {
    const dir = await directoryOf({})
    await mkdir(join(dir, 'images/old/tests'), { recursive: true })
    expect(await checkTestFolders(dir, new Set())).toEqual({ problems: [], warnings: [] })
  })

  test('of a site without images are none', async () => {
    expect(await checkTestFolders(await directoryOf({}), new Set())).toEqual({ problems: [], warnings: [] })
  })
})
