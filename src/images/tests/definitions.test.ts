import { chmod, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { type Files, directoryOf, temporaryDir } from '../../site/testing.ts'
import { type ImageTests, readTests } from './definitions.ts'

const AT = 'images/compute/tests'

const testsOf = async (files: Files): Promise<ImageTests> => readTests(await directoryOf(files), AT)

const ids = async (files: Files): Promise<string[]> => (await testsOf(files)).checks.map(({ id }) => id)

/** The lines of the error. */
async function problemsOf(files: Files | string): Promise<readonly string[]> {
  const dir = await directoryOf(typeof files === 'string' ? { 'a.yaml': files } : files)
  return problemsIn(dir)
}

async function problemsIn(dir: string): Promise<readonly string[]> {
  try {
    await readTests(dir, AT)
  } catch (error) {
    if (error instanceof MusterError && error.code === 'RECIPE_INVALID') return error.details
    throw error
  }
  return []
}

describe('tests of an image', () => {
  test('no folder: no tests', async () => {
    expect(await readTests(join(await temporaryDir(), 'absent'), AT)).toEqual({ checks: [], execs: [], places: [] })
    expect(await readTests(await temporaryDir(), AT)).toEqual({ checks: [], execs: [], places: [] })
  })

  test('a check has its attributes in the order they are checked, apart from its settings', async () => {
    const { checks, places } = await testsOf({
      'ssh.yaml': `where: container
service:
  ssh:
    running: true
    enabled: true
    title: people can log in
command:
  version:
    exec: sshd -V
    exit-status: { or: [0, 1] }
    stderr: ["/^OpenSSH_9/"]
    timeout: 5000
    skip: true
    meta: { why: [any, data] }
`,
    })
    expect(checks).toEqual([
      {
        id: 'ssh.yaml: service ssh',
        file: 'images/compute/tests/ssh.yaml',
        line: 3,
        place: 'container',
        kind: 'service',
        name: 'ssh',
        title: 'people can log in',
        skip: false,
        expected: { enabled: true, running: true },
        settings: {},
      },
      {
        id: 'ssh.yaml: command version',
        file: 'images/compute/tests/ssh.yaml',
        line: 8,
        place: 'container',
        kind: 'command',
        name: 'version',
        skip: true,
        expected: { 'exit-status': { or: [0, 1] }, stderr: ['/^OpenSSH_9/'] },
        settings: { exec: 'sshd -V', timeout: 5000 },
      },
    ])
    expect(Object.keys(checks[0]?.expected ?? {})).toEqual(['enabled', 'running'])
    expect(places).toEqual(['container'])
  })

  test('a program is a test too', async () => {
    const { execs, places } = await testsOf({
      'a.yaml':
        'exec:\n  posix:\n    run: [./posix, --all]\n    reads: tap\n    timeout: 60000\n    exit-codes: [0, 3]\n',
      'b.yaml':
        'where: vm\nexec:\n  scan:\n    run: oscap xccdf eval\n    reads: oscap\n    min-score: 87.5\n    on: outside\n',
    })
    expect(execs).toEqual([
      {
        id: 'a.yaml: exec posix',
        file: 'images/compute/tests/a.yaml',
        line: 2,
        place: 'root',
        name: 'posix',
        run: ['./posix', '--all'],
        reads: 'tap',
        on: 'inside',
        timeout: 60000,
        exitCodes: [0, 3],
      },
      {
        id: 'b.yaml: exec scan',
        file: 'images/compute/tests/b.yaml',
        line: 3,
        place: 'vm',
        name: 'scan',
        run: 'oscap xccdf eval',
        reads: 'oscap',
        on: 'outside',
        timeout: 600000,
        exitCodes: [0],
        minScore: 87.5,
      },
    ])
    expect(places).toEqual(['root', 'vm'])
  })

  test('names may be anything, with plus signs and colons', async () => {
    const { checks } = await testsOf({
      'a.yaml':
        'where: vm\npackage:\n  g++: { installed: true }\nport:\n  tcp:22: { listening: true }\nmatching:\n  a+: { content: { b+: 1 }, matches: { have-key: b+ } }\n',
    })
    expect(checks.map(({ id }) => id)).toEqual(['a.yaml: package g++', 'a.yaml: port tcp:22', 'a.yaml: matching a+'])
    expect(checks[2]?.settings).toEqual({ content: { 'b+': 1 } })
  })

  test('goss has every kind of resource we have', async () => {
    const { checks } = await testsOf({
      'all.yaml': `where: vm
addr: { "tcp://10.0.0.1:80": { reachable: true, timeout: 500, local-address: 127.0.0.1 } }
command: { go version: { exit-status: 0, stdout: [go], stderr: [], timeout: 10000, skip: false } }
dns: { localhost: { resolvable: true, addrs: { consist-of: [127.0.0.1] }, server: 8.8.8.8, timeout: 500 } }
file: { /etc/passwd: { exists: true, mode: "0644", size: { gt: 1 }, owner: root, group: root, filetype: file, contents: [root], md5: x, sha256: y, sha512: z } }
group: { nogroup: { exists: true, gid: 65534 } }
http: { "https://localhost": { status: 200, allow-insecure: true, no-follow-redirects: true, timeout: 1000, request-headers: ["A: b"], headers: ["A: b"], body: ["/x/"], username: u, password: p, method: PUT } }
interface: { eth0: { exists: true, addrs: [10.0.0.1/8], mtu: 1500 } }
kernel-param: { kernel.ostype: { value: Linux } }
mount: { /home: { exists: true, opts: [rw], vfs-opts: [rw], source: /dev/sda1, filesystem: xfs, usage: { lt: 95 } } }
matching: { two: { content: [2], matches: { contain-element: 2 } } }
package: { httpd: { installed: true, versions: [2.2.15] } }
port: { tcp6:22: { listening: true, ip: ["::"] } }
process: { chrome: { running: true } }
service: { sshd: { enabled: true, running: true, runlevels: ["3"] } }
user: { nobody: { exists: true, uid: 65534, gid: 65534, groups: [nogroup], home: /, shell: /sbin/nologin } }
`,
    })
    expect(checks.map(({ kind }) => kind).sort()).toEqual([
      'addr',
      'command',
      'dns',
      'file',
      'group',
      'http',
      'interface',
      'kernel-param',
      'matching',
      'mount',
      'package',
      'port',
      'process',
      'service',
      'user',
    ])
  })
})

describe('a gossfile', () => {
  const one = 'user: { root: { exists: true } }\n'

  test('takes in files of folders below, each once', async () => {
    const files = {
      'a.yaml': 'gossfile:\n  more/*.yaml: {}\n  b.yaml: {}\n',
      'b.yaml': `gossfile: { again: { file: more/x.yaml } }\n${one}`,
      'more/x.yaml': `gossfile: { y.yaml: {}, ../a.yaml: {} }\n${one}`,
      'more/y.yaml': one,
      'data/z.yaml': 'this: is: no yaml',
    }
    expect(await ids(files)).toEqual(['b.yaml: user root', 'more/x.yaml: user root', 'more/y.yaml: user root'])
  })

  test('leaves out what is to be skipped, mistakes and all', async () => {
    const files = { 'a.yaml': `gossfile: { b.yaml: { skip: true } }\n${one}`, 'b.yaml': 'oops' }
    expect(await ids(files)).toEqual(['a.yaml: user root'])
  })

  test('names files of the folder only', async () => {
    expect(await problemsOf('gossfile:\n  x.yaml: {}\n  ../y.yaml: {}\n  /etc/goss.d/*.yaml: {}\n')).toEqual([
      `${AT}/a.yaml:2:3: gossfile.x.yaml: there is no file x.yaml in the folder of the tests`,
      `${AT}/a.yaml:3:3: gossfile.../y.yaml: must name a file in the folder of the tests`,
      `${AT}/a.yaml:4:3: gossfile./etc/goss.d/*.yaml: must name a file in the folder of the tests`,
    ])
  })
})

describe('mistakes are told with their place', () => {
  test('all of all files together', async () => {
    expect(
      await problemsOf({
        'a.yaml': 'where: cloud\nfiel: {}\nuser:\n  root: { exist: true }\n',
        'b.yaml': 'package:\n  a: { installed: true }\npackage:\n  b: { installed: true }\n',
      }),
    ).toEqual([
      `${AT}/a.yaml:1:8: where: must be one of root, container, vm`,
      `${AT}/a.yaml:2:1: fiel: unknown resource — did you mean file?`,
      `${AT}/a.yaml:4:3: user.root.exists: is missing`,
      `${AT}/a.yaml:4:11: user.root.exist: unknown attribute — did you mean exists?`,
      `${AT}/b.yaml:3:1: the key "package" is already on line 1`,
    ])
  })

  test.each([
    ['- a\n', '1:1: must be a map of resources, such as file: and service:'],
    ['file: [a]\n', '1:7: file: must be a map'],
    ['file: { /a: true }\n', '1:13: file./a: must be a map of attributes'],
    ['file: { a: { exists: true } }\n', '1:9: file.a: is not an absolute path'],
    ['file: { a: { exists: true, path: b } }\n', '1:34: file.a.path: is not an absolute path'],
    [
      '{ where: vm, port: { http: { listening: true } } }\n',
      '1:22: port.http: is not a port such as tcp:22, tcp6:22, udp:53 or udp6:53',
    ],
    [
      'process: { sshd: { running: true } }\n',
      '1:20: process.sshd.running: is of a system that runs: write where: container, or vm, at the top of the file',
    ],
    [
      'service: { ssh: { enabled: true, running: true } }\n',
      '1:34: service.ssh.running: is of a system that runs: write where: container, or vm, at the top of the file',
    ],
    ['package: { --root: { installed: true } }\n', '1:12: package.--root: is not the name of a package'],
    ['service: { ssh: {} }\n', '1:12: service.ssh: checks nothing: give it an attribute'],
    ['user: { a: { exists: } }\n', '1:22: user.a.exists: is empty: give it a value, or take it away'],
    ['user: { a: { exists: true, skip: 1 } }\n', '1:34: user.a.skip: must be true or false'],
    ['user: { a: { exists: true, uid: !age x } }\n', '1:38: user.a.uid: a secret cannot stand in a test'],
    [
      'user: { a: { exists: true, exists+: [true] } }\n',
      '1:28: user.a.exists+: unknown attribute — did you mean exists?',
    ],
    ['user: { a: { exists: true, uid: { gt: x } } }\n', '1:39: user.a.uid.gt: must be a number'],
    [
      'user: { a: { exists: true, uid: { gt: 1, lt: 3 } } }\n',
      '1:33: user.a.uid: has gt and lt: it must be one matcher; several go into the list of an and or or',
    ],
    [
      'user: { a: { exists: true, home: { have-prefx: / } } }\n',
      '1:36: user.a.home.have-prefx: unknown matcher — did you mean have-prefix?',
    ],
    [
      'user: { a: { exists: true, home: { not: { or: [{ match-regexp: "(" }] } } } }\n',
      '1:64: user.a.home.not.or.0.match-regexp: is not a regular expression: Unterminated group',
    ],
    [
      'file: { /a: { exists: true, contents: [ok, "!/[z-a]/"] } }\n',
      '1:44: file./a.contents.1: is not a regular expression: Range out of order in character class',
    ],
    [
      'package: { a: { installed: true, versions: { semver-constraint: newest } } }\n',
      '1:65: package.a.versions.semver-constraint: is not a constraint such as ">=1.2.0 <2.0.0"',
    ],
    [
      'command: { a: { exit-status: 0, stdout: { gjson: { "a.#(b==1)": 1 } } } }\n',
      String.raw`1:52: command.a.stdout.gjson.a.#(b==1): uses #(: keys, numbers, # and @this are known, with \ before a character that means itself`,
    ],
    [
      'command: { a: { exit-status: 0, timeout: 0 } }\n',
      '1:42: command.a.timeout: must be a whole number from 1 to 86400000',
    ],
    [
      'user: &a { root: { exists: true } }\n',
      '1:10: anchors and aliases are not used in site files; put shared values into a group',
    ],
    ['exec: { a: {} }\n', '1:9: exec.a.run: is missing'],
    [
      'exec: { a: { run: [], on: there } }\n',
      ['1:19: exec.a.run: must not be empty', '1:27: exec.a.on: must be one of inside, outside'],
    ],
    [
      'exec: { a: { run: x, min-score: 5, scroe: 1 } }\n',
      ['1:33: exec.a.min-score: is for what reads oscap', '1:36: exec.a.scroe: unknown attribute'],
    ],
  ])('%s', async (text, expected) => {
    expect(await problemsOf(text)).toEqual([expected].flat().map(line => `${AT}/a.yaml:${line}`))
  })
})

describe('the folder', () => {
  test('has a digest of names, contents and what is executable', async () => {
    const files = { 'a.yaml': 'user: { root: { exists: true } }\n', run: '#!/bin/sh\n' }
    const dir = await directoryOf(files)
    const digest = async (): Promise<string | undefined> => (await readTests(dir, AT)).digest
    const first = await digest()
    expect(first).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect((await testsOf(files)).digest).toBe(first)
    await chmod(join(dir, 'run'), 0o755)
    const executable = await digest()
    expect(executable).not.toBe(first)
    expect((await testsOf({ ...files, run: '#!/bin/bash\n' })).digest).not.toBe(first)
    expect((await testsOf({ 'a.yaml': files['a.yaml'], walk: files.run })).digest).not.toBe(first)
  })

  test('is no place for what is large', async () => {
    expect(await problemsOf({ 'a.bin': Buffer.alloc(2 ** 20 + 1) })).toEqual([`${AT}/a.bin:1:1: is larger than 1 MiB`])
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`f${at}`, Buffer.alloc(2 ** 20)]))
    expect(await problemsOf(many)).toEqual([`${AT}:1:1: holds more than 16 MiB`])
    const small = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`f${at}`, '']))
    expect(await problemsOf(small)).toEqual([`${AT}:1:1: holds more than 1000 files`])
  })

  test('holds links to its own files only', async () => {
    const dir = await directoryOf({ 'data/a': '1' })
    await symlink('data/a', join(dir, 'b'))
    expect(await problemsIn(dir)).toEqual([])
    await symlink('/etc/passwd', join(dir, 'c'))
    await symlink('absent', join(dir, 'd'))
    expect(await problemsIn(dir)).toEqual([
      `${AT}/c:1:1: is a symbolic link that leads to no file of the folder`,
      `${AT}/d:1:1: is a symbolic link that leads to no file of the folder`,
    ])
  })
})
