import { chmod, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Subject } from '../subject.ts'
import { outcomesOf, treeSubject } from '../testing.ts'

const unit = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n'

test('systemd says what is enabled, also in a tree that does not run', async () => {
  const subject = await treeSubject(
    {
      'etc/systemd/system/on.service': unit,
      'etc/systemd/system/off.service': unit,
    },
    async dir => {
      const wants = join(dir, 'etc/systemd/system/multi-user.target.wants')
      await mkdir(wants)
      await symlink('../on.service', join(wants, 'on.service'))
      await symlink('/dev/null', join(dir, 'etc/systemd/system/masked.service'))
    },
  )
  expect(
    await outcomesOf(
      subject,
      `service:
  on: { enabled: true, running: false }
  renamed: { name: on.service, enabled: false }
  off: { enabled: false }
  masked: { enabled: false }
  absent: { enabled: true }
`,
    ),
  ).toEqual([
    'on enabled: passed',
    'on running: failed, no service runs in a tree that is not booted: write where: container in the file',
    'renamed enabled: failed, true',
    'off enabled: passed',
    'masked enabled: passed',
    'absent enabled: failed, false',
  ])
})

const tree = (): Promise<Subject> =>
  treeSubject(
    {
      'etc/init.d/up': '#!/bin/sh\n[ "$1" = status ]\n',
      'etc/init.d/down': '#!/bin/sh\nexit 3\n',
      'etc/rc3.d/S20up': '',
      'etc/rc5.d/S20up': '',
      'etc/rc0.d/K20up': '',
      'etc/runlevels/default/chronyd': '',
    },
    async dir => {
      for (const name of ['up', 'down']) await chmod(join(dir, 'etc/init.d', name), 0o755)
    },
    ['sh'],
  )

describe('without systemd', () => {
  test('init scripts and OpenRC say what is enabled, and in which runlevels', async () => {
    expect(
      await outcomesOf(
        await tree(),
        `service:
  up: { enabled: true, runlevels: { consist-of: ["3", "5"] } }
  down: { enabled: true }
  chronyd: { enabled: true, runlevels: [default] }
`,
      ),
    ).toEqual([
      'up enabled: passed',
      'up runlevels: passed',
      'down enabled: failed, false',
      'chronyd enabled: passed',
      'chronyd runlevels: passed',
    ])
  })

  test('the script itself says what is running', async () => {
    const subject = { ...(await tree()), place: 'container' as const }
    expect(
      await outcomesOf(
        subject,
        'service: { up: { running: true }, down: { running: true }, absent: { running: false } }',
      ),
    ).toEqual(['up running: passed', 'down running: failed, false', 'absent running: passed'])
  })
})
