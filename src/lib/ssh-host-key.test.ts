import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { exec } from './exec.ts'
import { sshHostKey } from './ssh-host-key.ts'

it.for(['n1', 'n12', 'n123', 'n1234', 'login-a.example.org'])('the key of %s is one that OpenSSH takes', async host => {
  const dir = await mkdtemp(join(tmpdir(), 'muster-ssh-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  const key = sshHostKey('a long secret', host)
  await writeFile(join(dir, 'key'), key.private, { mode: 0o600 })
  const { stdout } = await exec('ssh-keygen', ['-y', '-f', join(dir, 'key')])
  expect(stdout.toString()).toBe(`${key.public}\n`)
  await writeFile(join(dir, 'key.pub'), `${key.public}\n`)
  const { stdout: about } = await exec('ssh-keygen', ['-l', '-f', join(dir, 'key.pub')])
  expect(about.toString()).toMatch(new RegExp(`^256 SHA256:\\S+ ${host.replaceAll('.', '\\.')} \\(ED25519\\)\n$`))
})

const of = (secret: string, host: string): string => sshHostKey(secret, host).private

it('is the same for the same secret and host, and another for others', () => {
  expect(of('secret', 'n1')).toBe(of('secret', 'n1'))
  expect(new Set([of('secret', 'n1'), of('secret', 'n2'), of('other', 'n1')]).size).toBe(3)
})
