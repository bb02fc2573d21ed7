import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { discoveryExtras } from './extras.ts'
import { parseLdd } from './programs.ts'

test('what ldd says of a program', () => {
  const text = [
    '\tlinux-vdso.so.1 (0x00007ffd0bb9f000)',
    '\tlibpcap.so.0.8 => /lib/x86_64-linux-gnu/libpcap.so.0.8 (0x00007f7d5c3a1000)',
    '\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f7d5bca2000)',
    '\t/lib64/ld-linux-x86-64.so.2 (0x00007f7d5c4e6000)',
    '',
  ].join('\n')
  expect(parseLdd(text)).toEqual({
    loader: '/lib64/ld-linux-x86-64.so.2',
    libraries: ['/lib/x86_64-linux-gnu/libpcap.so.0.8', '/lib/x86_64-linux-gnu/libc.so.6'],
  })
})

test('programs of this machine run where there is nothing else', async () => {
  const { archive, programs } = await discoveryExtras()
  expect((await discoveryExtras()).archive.equals(archive)).toBe(true)
  const dir = await mkdtemp(join(tmpdir(), 'muster-extras-'))
  try {
    await chmod(dir, 0o755)
    const { stdout } = await exec('gzip', ['-dc'], { input: archive })
    await exec('cpio', ['--extract', '--quiet'], { cwd: dir, input: stdout })
    for (const program of programs) {
      const version = program === 'tcpdump' ? '--version' : '-V'
      const loader = (await exec('sh', ['-c', 'echo extras/lib/ld-*'], { cwd: dir })).stdout.toString().trim()
      const args = ['/' + loader, '--library-path', '/extras/lib', `/extras/programs/${program}`, version]
      const { stdout: said } = await exec('chroot', [dir, ...args])
      expect(said.toString()).toMatch(new RegExp(`^${program} version`))
    }
  } finally {
    await rm(dir, { recursive: true })
  }
})
