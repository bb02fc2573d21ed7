import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isInstalled } from './which.ts'

test('a command is looked for in the path, and in more directories', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'muster-which-'))
  try {
    expect(await isInstalled('sh')).toBe(true)
    expect(await isInstalled('no-such-command')).toBe(false)
    await writeFile(join(dir, 'no-such-command'), '')
    expect(await isInstalled('no-such-command', [dir])).toBe(false)
    await chmod(join(dir, 'no-such-command'), 0o755)
    expect(await isInstalled('no-such-command', [dir])).toBe(true)
  } finally {
    await rm(dir, { recursive: true })
  }
})
