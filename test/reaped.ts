// oxlint-disable-next-line no-restricted-imports -- only its type
import type { ChildProcess } from 'node:child_process'
import { afterAll } from 'vitest'

const running = new Set<ChildProcess>()
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

/** Whatever a file of tests starts ends with it at the latest, also when a test fails half way. */
export function reaped<Child extends ChildProcess>(child: Child): Child {
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}
