import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { directoryOf, failureOf, temporaryDir } from '../../site/testing.ts'
import { resolveApt } from './apt.ts'

const RELEASE = `Suite: tiny
Date: Mon, 01 Jan 2024 00:00:00 UTC
SHA256:
 ${createHash('sha256').update('').digest('hex')} 0 Packages
`

/** An empty repository that ada has signed, and a key of bob's. */
async function world(): Promise<{ url: string; keyOf: (who: string) => string; state: string }> {
  const dir = await temporaryDir()
  const repository = await directoryOf({ Packages: '', Release: RELEASE })
  for (const who of ['ada', 'bob']) {
    const home = join(dir, who)
    await mkdir(home, { mode: 0o700 })
    const gpg = (...args: string[]) =>
      exec('gpg', ['--homedir', home, '--batch', '--quiet', '--passphrase', '', ...args])
    // gpg starts an agent of its own.
    onTestFinished(async () => void (await exec('gpgconf', ['--homedir', home, '--kill', 'all'])))
    await gpg('--quick-generate-key', who, 'ed25519', 'sign', 'never')
    await writeFile(join(dir, `${who}.asc`), (await gpg('--armor', '--export', who)).stdout)
    if (who === 'ada') await gpg('--clearsign', '--output', join(repository, 'InRelease'), join(repository, 'Release'))
  }
  return { url: `file://${repository}`, keyOf: who => join(dir, `${who}.asc`), state: join(dir, 'state') }
}

test('a repository that another key has signed is named, with the key', async () => {
  const { url, keyOf, state } = await world()
  const resolve = (who: string): Promise<unknown> => {
    const sources = [{ name: 'tiny', urls: [url], suite: './', components: [], key: keyOf(who) }]
    return resolveApt({ sources, arch: 'amd64', packages: [], status: '', keep: [], state }, {})
  }
  expect(await resolve('ada')).toMatchObject({ packages: [] })
  expect(await failureOf(() => resolve('bob'))).toBe(
    `MIRROR_UNREACHABLE: repository tiny is not signed by the key ${keyOf('bob')}`,
  )
})
