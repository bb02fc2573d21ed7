import { MusterError } from './lib/errors.ts'

/** What `muster serve` is told. */
export interface ServeOptions {
  readonly role: 'all' | 'control' | 'boot'
  readonly data: string
  readonly listen: string
  readonly bootListen?: string
  readonly control?: string
  readonly ownDnsmasq?: boolean
  readonly socket?: string
  readonly key?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly logLevel: string
}

/** An address and port; or fd:3, a socket that whoever started us is listening on already. */
export function parseListen(text: string): { host: string; port: number; fd?: number } {
  const inherited = /^fd:(\d{1,3})$/.exec(text)?.[1]
  if (inherited !== undefined) return { host: '127.0.0.1', port: 0, fd: Number(inherited) }
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  if (host === undefined || Number(port) > 65_535)
    throw new MusterError('USAGE', `${text} is not an address such as 127.0.0.1:7171 or [::1]:7171`)
  return { host, port: Number(port) }
}
