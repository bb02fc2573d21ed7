import { TIMED_OUT } from '../subject.ts'
import { type Observe, gather, shell, targetOf, textSetting, timeoutOf, trouble } from './look.ts'

const HALF_A_SECOND = 500

/** Whatever the image has that can connect; a datagram always arrives, as far as its sender knows. */
const CONNECT = `
host=$1 port=$2 seconds=$3 from=$4
if [ -z "$from" ] && command -v bash >/dev/null 2>&1; then
  bash -c 'exec 3<>"/dev/tcp/$1/$2"' bash "$host" "$port" 2>/dev/null && echo reached
elif command -v nc >/dev/null 2>&1; then
  if [ -z "$from" ]; then set --; else set -- -s "$from"; fi
  nc -z -w "$seconds" "$@" "$host" "$port" >/dev/null 2>&1 && echo reached
elif command -v curl >/dev/null 2>&1; then
  if [ -z "$from" ]; then set --; else set -- --interface "$from"; fi
  case $host in *:*) host=[$host] ;; esac
  # How long it took to connect; nothing but noughts where it did not.
  curl -s -m "$seconds" "$@" -o /dev/null -w '%{time_connect}' "telnet://$host:$port" </dev/null |
    grep -q '[1-9]' && echo reached
else exit 127; fi
exit 0`

export const observeAddr: Observe = async (subject, check) => {
  const [, protocol = '', host = '', port = ''] = /^(\w+):\/\/(.+):(\d+)$/.exec(targetOf(check)) ?? []
  if (protocol.startsWith('udp')) return gather(check, { reachable: true })
  const timeout = timeoutOf(check, HALF_A_SECOND)
  const seconds = String(Math.max(1, Math.ceil(timeout / 1000)))
  const args = [host.replaceAll(/^\[|\]$/g, ''), port, seconds, textSetting(check, 'local-address') ?? '']
  const result = await shell(subject, CONNECT, args, { timeout: timeout + GRACE })
  if (result.exitCode === 0) return gather(check, { reachable: result.stdout.includes('reached') })
  // Who is silent is not reached; not to know is something else.
  return gather(check, { reachable: result.exitCode === TIMED_OUT ? false : trouble(result, 'bash, nc or curl') })
}

/** For the programs to start. */
const GRACE = 5000
