import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { exec } from '../../../lib/exec.ts'
import { directoryOf, failureOf, temporaryDir } from '../../../site/testing.ts'
import type { Subject } from '../subject.ts'
import { outcomesOf, treeSubject } from '../testing.ts'
import { parseFacts } from './facts.ts'
import { type Learnt, learn } from './learn.ts'
import { factsOfMachine, factsOfSubject } from './sources.ts'

const SCRIPT = fileURLToPath(new URL('facts.sh', import.meta.url))
const signal = new AbortController().signal

const learnFrom = async (subject: Subject): Promise<Learnt> =>
  learn(await factsOfSubject(subject, 'a tree'), { from: 'a tree', versions: true })

/** What the evaluator itself finds not to be so. */
const failing = async (subject: Subject, text: string | undefined): Promise<string[]> =>
  (await outcomesOf(subject, text ?? '')).filter(outcome => !outcome.endsWith(': passed'))

test('shellcheck has nothing to say about what looks at systems', async () => {
  const { stdout } = await exec('shellcheck', ['--shell=sh', SCRIPT], { allow: [1] })
  expect(stdout.toString('utf8')).toBe('')
})

const ACCOUNTS = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000:Ada L:/home/ada:/bin/sh\n+nis::::::\n',
  'etc/group': 'root:x:0:\nada:x:1000:\nhpc:x:2000:ada\n',
}

const ALPINE = {
  ...ACCOUNTS,
  'etc/os-release': 'ID=alpine\nPRETTY_NAME="Alpine Linux v3.20"\n',
  'lib/apk/db/installed': 'C:Q1\nP:busybox\nV:1.36.1-r2\n\nC:Q1\nP:slurm\nV:23.11.4-r0\nA:x86_64\n',
  // Its last line has no end.
  'etc/apk/world': 'slurm~23\n!mc',
  'etc/fstab': '# disks\n  server:/home  /home  nfs4 rw 0 0\n',
  'etc/sysctl.d/10-hpc.conf': '; a remark\nkernel.numa_balancing = 0\n',
  'etc/shadow': '',
  'usr/bin/su': '',
}

describe('what is learnt of a tree is so in that tree', () => {
  test('of Alpine, with little more than a shell', async () => {
    const programs = ['sh', 'stat', 'find', 'readlink', 'cat', 'printf']
    const subject = await treeSubject(
      ALPINE,
      async dir => {
        await exec('chmod', ['4755', join(dir, 'usr/bin/su')])
        await exec('chmod', ['0640', join(dir, 'etc/shadow')])
        await mkdir(join(dir, 'etc/runlevels/default'), { recursive: true })
        await symlink('/etc/init.d/slurmd', join(dir, 'etc/runlevels/default/slurmd'))
        await symlink('/usr/share/zoneinfo/UTC', join(dir, 'etc/localtime'))
      },
      programs,
    )
    const { root, counts, notes, container } = await learnFrom(subject)
    expect(root).toContain('from a tree (Alpine Linux v3.20).')
    expect(root).toContain('  slurm: { installed: true, versions: ["23.11.4-r0"] }\n')
    expect({ counts, notes, container }).toEqual({
      counts: { package: 1, service: 1, user: 1, group: 1, file: 5, mount: 1, 'kernel-param': 1 },
      notes: [],
      container: undefined,
    })
    expect(await failing(subject, root)).toEqual([])
  })

  test('of the Red Hat family', async () => {
    const files = { ...ACCOUNTS, 'etc/rpm/macros': '%_dbpath /var/lib/rpm\n', 'etc/systemd/system/up.service': UNIT }
    const subject = await treeSubject(files, async dir => {
      await rpmDatabase(dir)
      const wants = join(dir, 'etc/systemd/system/multi-user.target.wants')
      await mkdir(wants)
      await symlink('../up.service', join(wants, 'up.service'))
    })
    const { root } = await learnFrom(subject)
    expect(root).toContain('  tiny: { installed: true, versions: ["2:1.2.3-4"] }\n')
    expect(root).toContain('  up: { enabled: true }\n')
    expect(await failing(subject, root)).toEqual([])
  })

  test('without the program to ask, and then that is said', async () => {
    const subject = await treeSubject({ ...ACCOUNTS, 'var/lib/dpkg/status': '' }, undefined, ['sh', 'cat', 'printf'])
    const { root, notes } = await learnFrom(subject)
    expect(notes).toEqual(['nothing was learnt of packages: there is no dpkg-query to ask'])
    expect(await failing(subject, root)).toEqual([])
  })
})

const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n'

/** A package that holds nothing, noted down as installed. */
async function rpmDatabase(dir: string): Promise<void> {
  const work = await temporaryDir()
  const head = 'Name: tiny\nEpoch: 2\nVersion: 1.2.3\nRelease: 4\nSummary: small\nLicense: MIT\nBuildArch: noarch\n'
  await writeFile(join(work, 'tiny.spec'), `${head}%description\nsmall\n%files\n`)
  await exec('rpmbuild', ['-bb', '--quiet', '--define', `_topdir ${work}`, join(work, 'tiny.spec')])
  const database = join(dir, 'var/lib/rpm')
  await mkdir(database, { recursive: true })
  const file = join(work, 'RPMS/noarch/tiny-1.2.3-4.noarch.rpm')
  await exec('rpm', ['--dbpath', database, '--install', '--justdb', '--nodeps', file])
}

describe('a machine', () => {
  test('is this one, as every shell sees it', async () => {
    const { stdout: dash } = await exec('dash', ['-s', 'running'], { input: await script() })
    const { stdout: busybox } = await exec('busybox', ['sh', '-s', 'running'], { input: await script() })
    expect(settled(busybox)).toEqual(settled(dash))
    const { user, package: packages } = parseFacts(dash, 'this machine')
    expect(user).toContainEqual(['root', '0', '0', '/root', expect.stringMatching(/^\/.*sh$/)])
    expect(packages.length).toBeGreaterThan(10)
  })

  test.each([
    ['says too much', 'muster-facts 1\\n%09999999d', /it says more than 4 MiB$/],
    ['says what is no fact', 'muster-facts 1\\nreboot\\nend\\n', /line 2 is no fact$/],
  ])('that %s is not believed', async (_, format, why) => {
    const dir = await directoryOf({ ssh: `#!/bin/sh\nprintf '${format}' 0\n` })
    await exec('chmod', ['+x', join(dir, 'ssh')])
    const path = process.env['PATH']
    process.env['PATH'] = `${dir}:${path}`
    try {
      expect(await failureOf(() => factsOfMachine('n1', { from: 'ssh:n1', signal }))).toMatch(why)
    } finally {
      process.env['PATH'] = path
    }
  })
})

const script = async (): Promise<Buffer> => (await exec('cat', [SCRIPT])).stdout

/** Others on this machine open and close sockets meanwhile. */
const settled = (said: Buffer): string[] =>
  said
    .toString('utf8')
    .split('\n')
    .filter(line => !line.startsWith('socket\t'))
