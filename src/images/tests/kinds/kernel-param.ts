import { Unknown } from '../found.ts'
import { type Observe, gather, readText, targetOf } from './look.ts'

export const observeKernelParam: Observe = async (subject, check) => {
  const name = targetOf(check)
  const text = await readText(subject, `/proc/sys/${pathOf(name)}`)
  const value = text === undefined ? new Unknown(`there is no parameter ${name}`) : text
  return gather(check, { value: typeof value === 'string' ? value.trimEnd() : value })
}

/** net.ipv4.conf.eth0/1.forwarding: where dots divide, a slash is a dot, and the other way round. */
function pathOf(name: string): string {
  const divider = /[./]/.exec(name)?.[0]
  if (divider === '/') return name
  return name.replaceAll(/[./]/g, character => (character === '.' ? '/' : '.'))
}
