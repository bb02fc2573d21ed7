// oxlint-disable-next-line no-restricted-imports -- only its type
import type { ChildProcess } from 'node:child_process'

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Whatever a test starts ends with it at the latest, also when the test fails half way. */
export function reaped<Child extends ChildProcess>(child: Child): Child {
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}
