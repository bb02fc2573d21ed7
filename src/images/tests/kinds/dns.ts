import { isAddress } from '../../../lib/ip.ts'
import { Unknown, linesOf } from '../found.ts'
import type { Subject } from '../subject.ts'
import { type Observe, gather, shell, targetOf, textSetting, timeoutOf, trouble, unknown } from './look.ts'

const HALF_A_SECOND = 500
/** Of getent and dig alike, to start. */
const GRACE = 5000

/** As programs in the image resolve a name; of a server that is named, any kind of record (`MX:example.org`). */
export const observeDns: Observe = async (subject, check) => {
  const [, type, name = ''] = /^(?:(A|AAAA|CAA|CNAME|MX|NS|PTR|SRV|TXT):)?(.*)$/s.exec(targetOf(check)) ?? []
  const server = textSetting(check, 'server')
  if (type !== undefined && server === undefined)
    return unknown(check, new Unknown(`a ${type} record is asked of a server: say which with server:`))
  const addrs =
    server === undefined
      ? await resolve(subject, name)
      : await ask(subject, { name, type, server, timeout: timeoutOf(check, HALF_A_SECOND) })
  return addrs instanceof Unknown ? unknown(check, addrs) : gather(check, { resolvable: addrs.length > 0, addrs })
}

/** Both kinds of addresses, also where no interface has one of a kind; an old getent does not know how. */
const RESOLVE = 'getent --no-addrconfig ahosts "$1" 2>/dev/null || getent ahosts "$1"'

async function resolve(subject: Subject, name: string): Promise<string[] | Unknown> {
  const result = await shell(subject, RESOLVE, [name], { timeout: 30_000 })
  // 2: there is no such name.
  if (result.exitCode === 2) return []
  if (result.exitCode !== 0) return trouble(result, 'getent')
  const addresses = linesOf(result.stdout.toString('utf8')).map(line => line.split(/\s/)[0] ?? '')
  return [...new Set(addresses)]
}

interface Question {
  readonly name: string
  readonly type: string | undefined
  readonly server: string
  readonly timeout: number
}

async function ask(subject: Subject, { name, type, server, timeout }: Question): Promise<string[] | Unknown> {
  const [, host = server, port = '53'] = /^([^:]+|\[.*\]):(\d+)$/.exec(server) ?? []
  const seconds = Math.max(1, Math.ceil(timeout / 1000))
  const options = [`@${host.replaceAll(/[[\]]/g, '')}`, '-p', port, '+short', '+tries=1', `+time=${seconds}`]
  const kinds = type === undefined ? ['A', 'AAAA'] : [type]
  const answers: string[] = []
  for (const kind of kinds) {
    const argv = type === 'PTR' ? [...options, '-x', name] : [...options, '-t', kind, '-q', name]
    const result = await shell(subject, 'dig "$@"', argv, { timeout: timeout + GRACE })
    if (result.exitCode !== 0) return trouble(result, 'dig')
    answers.push(...linesOf(result.stdout.toString('utf8')).flatMap(line => recordsOf(kind, line)))
  }
  return answers
}

/** As goss writes them: no names on the way to an address, and no quotes. */
function recordsOf(kind: string, line: string): string[] {
  if (line === '' || line.startsWith(';')) return []
  if (kind === 'A' || kind === 'AAAA') return isAddress(line) ? [line] : []
  if (kind === 'TXT') return [...line.matchAll(/"((?:\\.|[^"\\])*)"/g)].map(([, text = '']) => text)
  return [kind === 'CAA' ? line.replaceAll('"', '') : line]
}
