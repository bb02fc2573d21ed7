import { Unknown, linesOf } from '../found.ts'
import type { Subject } from '../subject.ts'
import { type Observe, gather, shell, targetOf, trouble } from './look.ts'

/** Asked of systemd where the image has it, of OpenRC or init scripts otherwise. */
export const observeService: Observe = (subject, check) => {
  const name = targetOf(check)
  return gather(check, {
    enabled: () => isEnabled(subject, name),
    running: () => isRunning(subject, name),
    runlevels: () => runlevelsOf(subject, name),
  })
}

/** In a tree that is not running systemd looks at the files itself; all its words for "starts" are exit status 0. */
const ENABLED = `
if command -v systemctl >/dev/null 2>&1; then
  if [ "$2" = root ]; then systemctl --root=/ --quiet is-enabled -- "$1"
  else systemctl --quiet is-enabled -- "$1"; fi
else
  set -- /etc/runlevels/*/"$1" /etc/rc[2345S].d/S[0-9][0-9]"$1"
  for link; do if [ -e "$link" ] || [ -L "$link" ]; then exit 0; fi; done
  exit 1
fi`

async function isEnabled(subject: Subject, name: string): Promise<boolean | Unknown> {
  const result = await shell(subject, ENABLED, [name, subject.place], { timeout: 30_000 })
  // 1: not enabled, 4: no such unit.
  if (result.exitCode === 0 || result.exitCode === 1 || result.exitCode === 4) return result.exitCode === 0
  return trouble(result, 'systemctl')
}

const RUNNING = `
if command -v systemctl >/dev/null 2>&1; then systemctl --quiet is-active -- "$1"
elif command -v rc-service >/dev/null 2>&1; then rc-service -- "$1" status >/dev/null 2>&1 || exit 3
elif [ -x "/etc/init.d/$1" ]; then "/etc/init.d/$1" status >/dev/null 2>&1 || exit 3
else exit 4; fi`

async function isRunning(subject: Subject, name: string): Promise<boolean | Unknown> {
  if (subject.place === 'root')
    return new Unknown('no service runs in a tree that is not booted: write where: container in the file')
  const result = await shell(subject, RUNNING, [name], { timeout: 30_000 })
  // 3: not active, 4: no such unit.
  if (result.exitCode === 0 || result.exitCode === 3 || result.exitCode === 4) return result.exitCode === 0
  return trouble(result, 'systemctl')
}

const RUNLEVELS = `
for link in /etc/runlevels/*/"$1"; do
  if [ -e "$link" ] || [ -L "$link" ]; then link=\${link%/*}; echo "\${link##*/}"; fi
done
for link in /etc/rc[0-9S].d/S[0-9][0-9]"$1"; do
  if [ -e "$link" ] || [ -L "$link" ]; then link=\${link#/etc/rc}; echo "\${link%%.*}"; fi
done`

async function runlevelsOf(subject: Subject, name: string): Promise<string[] | Unknown> {
  const result = await shell(subject, RUNLEVELS, [name])
  return result.exitCode === 0 ? linesOf(result.stdout.toString('utf8')) : trouble(result, 'sh')
}
