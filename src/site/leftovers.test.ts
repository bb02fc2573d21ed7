import { expect, test } from 'vitest'
import { whyTakenOut } from './leftovers.ts'

test.each([
  '/etc/munge/munge.key',
  '/etc/ssh/ssh_host_rsa_key',
  '//etc//ssh/ssh_host_ed25519_key.pub',
  '/tmp/a',
  '/run/slurm/x',
  '/var/tmp/a\nb',
  '/root/.cache/pip/x',
  '/var/log/dnf.rpm.log',
])('%s is taken out of every image', path => {
  expect(whyTakenOut(path)).toMatch(/^is taken out of every image/)
})

test.each(['/tmp', '/etc/munge', '/etc/munge/other', '/etc/ssh/sshd_config', '/srv/tmp/a', '/var/log/mine', '/runs/a'])(
  '%s stays',
  path => {
    expect(whyTakenOut(path)).toBeUndefined()
  },
)
