import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { exec } from '../../../lib/exec.ts'

test('shellcheck has nothing to say about what looks after a container', async () => {
  const script = fileURLToPath(new URL('container.sh', import.meta.url))
  const { stdout } = await exec('shellcheck', ['--shell=sh', script], { allow: [1] })
  expect(stdout.toString('utf8')).toBe('')
})
