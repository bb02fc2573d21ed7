import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readTestFile } from '../test-file.ts'
import { parseFacts } from './facts.ts'
import { type LearnOptions, type Learnt, learn } from './learn.ts'

const learnt = (lines: readonly string[], options: Partial<LearnOptions> = {}): Learnt =>
  learn(parseFacts(Buffer.from(['muster-facts 1', ...lines, 'end', ''].join('\n')), 'x'), {
    from: 'ssh:n1',
    ...options,
  })

/** Without the two lines that every file begins with. */
const root = (lines: readonly string[], options: Partial<LearnOptions> = {}): string =>
  (learnt(lines, options).root ?? '').replace(/^(#.*\n){2}\n?/, '')

const MACHINE = [
  'system\t"Debian GNU/Linux 12 (bookworm)"',
  'manager\tapt-mark',
  'package\tslurmd\t22.05.8-4\toptional\tnet',
  'package\tbase-files\t12\trequired\tadmin',
  'package\tlibc6\t2.36\toptional\tlibs',
  'package\tnot-asked-for\t1\toptional\tnet',
  'asked\tslurmd',
  'asked\tbase-files',
  'asked\tlibc6',
  'asked\tgone',
  'enabled\tssh.service',
  'enabled\tslurmd.service',
  'enabled\tgetty@.service',
  'enabled\tsystemd-pstore.service',
  'enabled\tpodman.socket',
  'active\tssh.service',
  'active\tdbus.service',
  'user\troot\t0\t0\t/root\t/bin/bash',
  'user\tada\t1000\t1000\t/home/ada\t/bin/bash',
  'user\tdaemon\t1\t1\t/usr/sbin\t/usr/sbin/nologin',
  'user\tpostgres\t105\t110\t/var/lib/postgresql\t/bin/bash',
  'group\tada\t1000\t',
  'group\thpc\t2000\tada',
  'group\tnogroup\t65534\t',
  'fstab\t/etc/fstab\tserver:/home /home nfs4 rw,secret=hunter2 0 0',
  'fstab\t/etc/fstab\tUUID=1234 /scratch xfs noatime 0 0',
  'fstab\t/etc/fstab\tUUID=5678 / ext4 defaults 0 1',
  'fstab\t/etc/fstab\tUUID=9abc none swap sw 0 0',
  'sysctl\t/etc/sysctl.d/10-a.conf\tvm.swappiness = 60',
  'sysctl\t/etc/sysctl.d/90-b.conf\tvm.swappiness=10',
  'sysctl\t/etc/sysctl.d/90-b.conf\tkernel.sem = 1\t2  3',
  'locale\t/etc/default/locale\tLANG=C.UTF-8',
  'locale\t/etc/default/locale\tLC_TIME=de_DE.UTF-8',
  'link\t/etc/localtime\t/usr/share/zoneinfo/Europe/Berlin',
  'file\t/etc/shadow\t81a0\t0\t42\troot\tshadow',
  'setuid\t/usr/bin/sudo\t89ed\t0\t0\troot\troot',
  'setuid\t/opt/tool\t89ed\t4711\t0\tUNKNOWN\troot',
  'socket\ttcp\t00000000:0016',
  'socket\ttcp6\t00000000000000000000000000000000:0016',
  'socket\ttcp\t0100007F:0CEA',
  'socket\ttcp\t0100007F:177A',
  'socket\ttcp\t0101A8C0:1F90',
  'socket\ttcp\t00000000:D903',
  'socket\tudp\t00000000:0044',
]

describe('what is learnt of a machine', () => {
  test('is what a person would have written first', () => {
    const { root: text, container, counts, notes } = learnt(MACHINE)
    expect(text).toBe(String.raw`# Learnt by muster image learn from ssh:n1 (Debian GNU/Linux 12 (bookworm)).
# A first set of checks: take out what you do not mean, and add what is missing.

package:
  # Packages asked for by hand (apt-mark showmanual), without libraries and those that every Debian has.
  slurmd: { installed: true }

service:
  # Services and sockets that start by themselves.
  podman.socket: { enabled: true }
  slurmd: { enabled: true }
  ssh: { enabled: true }

user:
  # Users that are people (from uid 1000 on), or that one can log in as.
  ada: { exists: true, uid: 1000, gid: 1000, home: /home/ada, shell: /bin/bash, groups: { consist-of: [ada, hpc] } }
  postgres: { exists: true, home: /var/lib/postgresql, shell: /bin/bash }

group:
  # Groups from gid 1000 on that are not the own ones of these users.
  hpc: { exists: true, gid: 2000 }

file:
  # Who may read and write what decides who gets in.
  /etc/shadow: { exists: true, filetype: file, mode: "0640", owner: root, group: shadow }
  # Time zone and language.
  /etc/default/locale: { exists: true, contents: ["/^\\s*LANG=C\\.UTF-8\\s*$/"] }
  /etc/localtime: { exists: true, filetype: symlink, linked-to: /usr/share/zoneinfo/Europe/Berlin }
  # Programs that run as their owner, whoever starts them (set-uid).
  /opt/tool: { exists: true, filetype: file, mode: "4755", owner: "4711", group: root }
  /usr/bin/sudo: { exists: true, filetype: file, mode: "4755", owner: root, group: root }
  # What is mounted, without the disk the system itself is on. As lines of fstab: nothing is mounted in a plain tree.
  /etc/fstab: { exists: true, contents: ["/^\\s*\\S+\\s+/scratch\\s+xfs(\\s|$)/", "/^\\s*server:/home\\s+/home\\s+nfs4(\\s|$)/"] }
  # Kernel parameters. As lines of files: neither a plain tree nor a container has a kernel of its own.
  /etc/sysctl.d/90-b.conf: { exists: true, contents: ["/^\\s*-?\\s*kernel\\.sem\\s*=\\s*1\\s+2\\s+3\\s*$/", "/^\\s*-?\\s*vm\\.swappiness\\s*=\\s*10\\s*$/"] }
`)
    expect(container).toBe(`# Learnt by muster image learn from ssh:n1 (Debian GNU/Linux 12 (bookworm)).
# A first set of checks: take out what you do not mean, and add what is missing.
where: container

service:
  # Of the services that start by themselves those that were running, and may run in a container.
  ssh: { running: true }

port:
  # Ports somebody was listening on, at any address or at that of the machine itself.
  tcp6:22: { listening: true }
  tcp:22: { listening: true }
  tcp:3306: { listening: true }
`)
    expect(counts).toEqual({
      package: 1,
      service: 4,
      user: 2,
      group: 1,
      file: 5,
      mount: 2,
      'kernel-param': 2,
      port: 3,
    })
    expect(notes).toEqual([])
  })

  test('is the same whatever the order of the facts', () => {
    const [first = '', ...rest] = MACHINE.filter(line => !line.startsWith('sysctl'))
    expect(learnt([first, ...rest.toReversed()])).toEqual(learnt([first, ...rest]))
  })

  test('is only of the kinds that were asked for', () => {
    const { root: text, container, counts } = learnt(MACHINE, { topics: ['group', 'port'] })
    expect(text).toMatch(/\n\ngroup:\n.*\n {2}hpc: \{ exists: true, gid: 2000 \}\n$/)
    expect(container).toContain('\nport:\n')
    expect(container).not.toContain('service')
    expect(counts).toEqual({ group: 1, port: 3 })
  })

  test('is no file where nothing is left for it', () => {
    expect(learnt(MACHINE, { topics: ['port'] })).not.toHaveProperty('root')
    expect(learnt(MACHINE, { topics: ['user'] })).not.toHaveProperty('container')
  })

  test('has nothing in it that belongs to nobody but the machine', () => {
    expect(learnt(MACHINE).root).not.toContain('hunter2')
  })
})

describe('packages', () => {
  const packages = ['package\tkernel\t6.2-1\t-\t-', 'package\tvim\t1:9.0-1\t-\t-', 'package\tkernel\t6.1-1\t-\t-']

  test('have their versions when that is wanted', () => {
    expect(root(['manager\tdnf', ...packages, 'asked\tkernel', 'asked\tvim'], { versions: true })).toBe(`package:
  # Packages asked for by hand (dnf repoquery --userinstalled).
  kernel: { installed: true, versions: { consist-of: ["6.1-1", "6.2-1"] } }
  vim: { installed: true, versions: ["1:9.0-1"] }
`)
  })

  test('are all of them where nobody knows which were asked for', () => {
    expect(root(['manager\trpm', ...packages, 'package\tgpg-pubkey\t1-1\t-\t-'])).toBe(`package:
  # All packages: there is no dnf or zypper to say which were asked for.
  kernel: { installed: true }
  vim: { installed: true }
`)
  })

  test('of SUSE are those that were not installed for others', () => {
    expect(root(['manager\tzypper', ...packages, 'automatic\tvim'])).toBe(`package:
  # Packages asked for by hand (all that /var/lib/zypp/AutoInstalled does not name).
  kernel: { installed: true }
`)
  })

  test('of Alpine are those of its world', () => {
    const world = ['vim>9', 'kernel@edge', '!mc', '.build-deps', 'so:libc.so'].map(line => `asked\t${line}`)
    expect(root(['manager\tapk', ...packages, ...world])).toBe(`package:
  # Packages asked for by hand (/etc/apk/world).
  kernel: { installed: true }
  vim: { installed: true }
`)
  })

  test('of another architecture are asked for as dpkg knows them', () => {
    const lines = ['manager\tapt-mark', 'package\tvim\t9\toptional\teditors', 'asked\tvim:i386']
    expect(root(lines)).toContain('  "vim:i386": { installed: true }\n')
  })
})

describe('odd names', () => {
  test('are left out, and said', () => {
    const { root: text, notes } = learnt([
      'enabled\tgood.service',
      String.raw`enabled	dev-disk\x2d1.service`,
      'user\tada lovelace\t1000\t1000\t/home/ada\t/bin/sh',
      'user\tbob\t1001\t1001\t/home/b$(reboot)b\t/bin/sh',
      'setuid\t/usr/bin/ö\t89ed\t0\t0\troot\troot',
      'sysctl\t/etc/sysctl.conf\tkernel.hostname = ö',
    ])
    expect(text).toMatch(/\nservice:\n.*\n {2}good: \{ enabled: true \}\n$/)
    expect(notes).toEqual([
      String.raw`left out: service dev-disk\x2d1: odd characters`,
      'left out: user ada lovelace: odd characters',
      'left out: user bob: odd characters',
      'left out: file /usr/bin/??: odd characters',
      'left out: kernel parameter kernel.hostname: odd characters',
    ])
  })

  test('that YAML would take for something else are in quotes', () => {
    const text = root(['user\tyes\t1000\t1000\t/home/yes\t/bin/sh', 'user\t007\t1007\t1007\t/home/007\t/bin/sh'])
    expect(text).toContain('  "007": { exists: true, uid: 1007')
    expect(text).toContain('  "yes": { exists: true, uid: 1000')
  })

  test('programs that are not there are said', () => {
    expect(learnt(['lacks\trpm', 'lacks\tstat']).notes).toEqual([
      'nothing was learnt of packages: there is no rpm to ask',
      'nothing was learnt of rights of files: there is no stat to ask',
    ])
  })
})

test('whatever a system says, what comes of it is a file of tests', () => {
  const word = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.constantFrom(
      '/etc/passwd',
      '1000',
      '81a4',
      '89ed',
      'tcp',
      '00000000:0016',
      'a.b = 1',
      'x /y nfs',
      'LANG=C',
      '-x',
    ),
  )
  const kinds = { manager: 1, package: 4, asked: 1, enabled: 1, active: 1, user: 5, group: 3, fstab: 2, sysctl: 2 }
  const more = { locale: 2, link: 2, file: 6, setuid: 6, socket: 2, system: 1 }
  const line = fc.constantFrom(...Object.entries({ ...kinds, ...more })).chain(([kind, count]) =>
    fc
      .array(word, { minLength: count, maxLength: count })
      // oxlint-disable-next-line no-control-regex
      .map(words => [kind, ...words.map(one => one.replaceAll(/[\u0000-\u001F\u007F]/g, ''))].join('\t')),
  )
  const property = fc.property(fc.array(line, { maxLength: 20 }), fc.boolean(), (lines, versions) => {
    const { root: text, container } = learnt(lines, { versions })
    expect([problems(text), problems(container)]).toEqual([[], []])
  })
  expect(() => fc.assert(property, { numRuns: 500 })).not.toThrow()
})

const problems = (text: string | undefined): unknown =>
  text === undefined ? [] : readTestFile('tests', 'a.yaml', Buffer.from(text), []).problems
