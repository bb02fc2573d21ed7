import { Unknown, linesOf } from '../found.ts'
import type { Subject } from '../subject.ts'
import { type Observe, gather, readText, shell, targetOf, trouble } from './look.ts'

export const observeInterface: Observe = async (subject, check) => {
  const name = targetOf(check)
  const mtu = await readText(subject, `/sys/class/net/${name}/mtu`)
  if (mtu === undefined && !(await listed(subject, name))) return { exists: false }
  return gather(check, {
    exists: true,
    mtu:
      mtu === undefined ? new Unknown('there is no /sys to find out from') : mtu instanceof Unknown ? mtu : Number(mtu),
    addrs: () => addressesOf(subject, name),
  })
}

/** In a tree without /sys. */
async function listed(subject: Subject, name: string): Promise<boolean> {
  const table = await readText(subject, '/proc/net/dev')
  return typeof table === 'string' && linesOf(table).some(line => line.trim().startsWith(`${name}:`))
}

async function addressesOf(subject: Subject, name: string): Promise<string[] | Unknown> {
  const result = await shell(subject, 'ip -o addr show dev "$1"', [name])
  if (result.exitCode !== 0) return trouble(result, 'ip')
  return [...result.stdout.toString('utf8').matchAll(/\sinet6? (\S+)/g)].map(([, address = '']) => address)
}
