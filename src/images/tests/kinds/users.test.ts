import { expect, test } from 'vitest'
import { outcomesOf, treeSubject } from '../testing.ts'

const FILES = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/bash\nada:x:1000:1001:Ada,,,:/home/ada:/usr/sbin/nologin\n',
  'etc/group': 'root:x:0:\nada:x:1001:\nwheel:x:10:root,ada\nvideo:x:44:bob\n',
}

test('users and groups of the image', async () => {
  expect(
    await outcomesOf(
      await treeSubject(FILES),
      `user:
  ada: { exists: true, uid: 1000, gid: { gt: 1000 }, groups: { consist-of: [wheel, ada] }, home: /home/ada, shell: /usr/sbin/nologin }
  admin: { username: root, exists: true, uid: 1, groups: [root, video] }
  bob: { exists: false, uid: 5 }
group:
  wheel: { exists: true, gid: 10 }
  gpu: { groupname: video, exists: true, gid: 45 }
  bob: { exists: true }
`,
    ),
  ).toEqual([
    'ada exists: passed',
    'ada uid: passed',
    'ada gid: passed',
    'ada groups: passed',
    'ada home: passed',
    'ada shell: passed',
    'admin exists: passed',
    'admin uid: failed, 0',
    'admin groups: failed, ["root","wheel"]',
    'bob exists: passed',
    'bob uid: skipped, exists is false',
    'wheel exists: passed',
    'wheel gid: passed',
    'gpu exists: passed',
    'gpu gid: failed, 44',
    'bob exists: failed, false',
  ])
})

test('where there are no users nothing is known of them', async () => {
  expect(await outcomesOf(await treeSubject({}), 'user: { root: { exists: false, uid: 0 } }')).toEqual([
    'root exists: failed, there is no /etc/passwd',
    'root uid: failed, there is no /etc/passwd',
  ])
})
