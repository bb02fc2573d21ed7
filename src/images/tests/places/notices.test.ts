import { expect, test } from 'vitest'
import { StartNotices } from './notices.ts'

/** As it comes: lines of container.sh and systemd-socket-activate, then datagrams with nothing between them. */
const SAID = `CGROUP=/sys/fs/cgroup/system.slice/muster-test-7
Listening on /run/systemd/muster as 3.
Communication attempt on fd 3.
Execing sh (sh -c exec cat >&2)
STATUS=Container running.
X_NSPAWN_LEADER_PID=4711READY=1
STATUS=Container running: Ready.`

test('it is ready when it says so, however its words are cut up', async () => {
  for (let at = 0; at < SAID.length; at++) {
    const notices = new StartNotices()
    for (const part of [SAID.slice(0, at), SAID.slice(at)]) notices.hear(Buffer.from(part))
    expect(await notices.ready).toEqual({ pid: 4711, cgroup: '/sys/fs/cgroup/system.slice/muster-test-7' })
  }
})

test('it is not ready before', async () => {
  const notices = new StartNotices()
  notices.hear(Buffer.from(SAID.slice(0, SAID.indexOf('READY'))))
  expect(await Promise.race([notices.ready, Promise.resolve('not yet')])).toBe('not yet')
})
