import { linesOf } from '../found.ts'
import { type Observe, gather, shell, targetOf, trouble, unknown } from './look.ts'

/** Only with what the shell itself can do: the one process that is ours is left out. */
const NAMES = `
for dir in /proc/[0-9]*; do
  [ "$dir" = "/proc/$$" ] && continue
  if IFS= read -r name 2>/dev/null < "$dir/comm"; then echo "$name"; fi
done 2>/dev/null
exit 0`

/** The kernel keeps no more of a name. */
const COMM_LENGTH = 15

export const observeProcess: Observe = async (subject, check) => {
  const result = await shell(subject, NAMES)
  if (result.exitCode !== 0) return unknown(check, trouble(result, 'sh'))
  const names = linesOf(result.stdout.toString('utf8'))
  return gather(check, { running: names.includes(targetOf(check).slice(0, COMM_LENGTH)) })
}
