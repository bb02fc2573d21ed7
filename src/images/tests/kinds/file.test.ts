import { chmod, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exec } from '../../../lib/exec.ts'
import type { Subject } from '../subject.ts'
import { outcomesOf, treeSubject } from '../testing.ts'

const tree = (): Promise<Subject> =>
  treeSubject(
    {
      'etc/passwd': 'root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n',
      'etc/group': 'root:x:0:\nstaff:x:1000:\n',
      'etc/motd': 'Welcome to n001\nunder test\n',
      "odd dir/it's $(here)": 'x',
    },
    async dir => {
      await exec('chown', ['1000:77', join(dir, 'etc/motd')])
      await chmod(join(dir, 'etc/motd'), 0o4640)
      await symlink('../etc/motd', join(dir, 'etc/link'))
      await symlink('nowhere', join(dir, 'etc/broken'))
      await exec('mkfifo', [join(dir, 'etc/pipe')])
      await writeFile(join(dir, 'etc/large'), `first\n${'x'.repeat(2 ** 20)}\nlast\n`)
    },
  )

describe('a file', () => {
  test('is what it is', async () => {
    expect(
      await outcomesOf(
        await tree(),
        `file:
  /etc/motd:
    exists: true
    filetype: file
    mode: "4640"
    owner: ada
    uid: 1000
    group: "77"
    gid: 77
    size: { le: 27 }
    contents: [Welcome, "!welcome", "/n\\\\d+$/"]
    md5: MD5
    sha256: { have-prefix: "" }
    sha512: { have-len: 128 }
  /etc: { exists: true, filetype: directory, mode: "0755" }
  /etc/link: { exists: true, filetype: symlink, linked-to: ../etc/motd, contents: [Welcome], mode: "0777" }
  /etc/broken: { exists: true, filetype: symlink }
  /etc/pipe: { exists: true, filetype: pipe }
  /dev/null: { exists: true, filetype: character-device }
  it: { exists: true, path: "/odd dir/it's $(here)", size: 1 }
`.replace('MD5', await md5('Welcome to n001\nunder test\n')),
      ),
    ).toEqual([
      '/etc/motd exists: passed',
      '/etc/motd filetype: passed',
      '/etc/motd mode: passed',
      '/etc/motd owner: passed',
      '/etc/motd uid: passed',
      '/etc/motd group: passed',
      '/etc/motd gid: passed',
      '/etc/motd size: passed',
      '/etc/motd contents: passed',
      '/etc/motd md5: passed',
      '/etc/motd sha256: passed',
      '/etc/motd sha512: passed',
      '/etc exists: passed',
      '/etc filetype: passed',
      '/etc mode: passed',
      '/etc/link exists: passed',
      '/etc/link filetype: passed',
      '/etc/link mode: passed',
      '/etc/link linked-to: passed',
      '/etc/link contents: passed',
      '/etc/broken exists: passed',
      '/etc/broken filetype: passed',
      '/etc/pipe exists: passed',
      '/etc/pipe filetype: passed',
      '/dev/null exists: passed',
      '/dev/null filetype: passed',
      'it exists: passed',
      'it size: passed',
    ])
  })

  test('that is not as expected is told', async () => {
    expect(
      await outcomesOf(
        await tree(),
        `file:
  /etc/absent: { exists: true, mode: "0644" }
  /etc/gone: { exists: false, mode: "0644" }
  /etc/motd: { exists: false }
  again: { path: /etc/motd, exists: true, mode: "0644", owner: root, linked-to: x, contents: [missing, "!Welcome"] }
  /etc/broken: { exists: true, contents: [x], sha256: x }
  /etc: { exists: true, contents: [x] }
  /etc/large: { exists: true, contents: [first, "!absent"] }
`,
      ),
    ).toEqual([
      '/etc/absent exists: failed, false',
      '/etc/absent mode: skipped, exists is false',
      '/etc/gone exists: passed',
      '/etc/gone mode: skipped, exists is false',
      '/etc/motd exists: failed, true',
      'again exists: passed',
      'again mode: failed, "4640"',
      'again owner: failed, "ada"',
      'again linked-to: failed, is no symbolic link',
      'again contents: failed, "Welcome to n001"',
      '/etc/broken exists: passed',
      expect.stringMatching(/^\/etc\/broken contents: failed, .*No such file/i),
      expect.stringMatching(/^\/etc\/broken sha256: failed, .*No such file/i),
      '/etc exists: passed',
      expect.stringMatching(/^\/etc contents: failed, .*Is a directory/),
      '/etc/large exists: passed',
      '/etc/large contents: failed, "not in the first MiB, and there is more"',
    ])
  })
})

async function md5(text: string): Promise<string> {
  const { stdout } = await exec('md5sum', [], { input: text })
  return stdout.toString('utf8').slice(0, 32)
}
