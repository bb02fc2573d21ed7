import { parseDuration } from '../../lib/duration.ts'
import { MusterError } from '../../lib/errors.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { ago, table } from '../output.ts'

interface Token {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly createdAt: string
  readonly createdBy: string
  readonly expiresAt: string
}

const LONGEST = 366 * 86_400

export async function create({
  io,
  out,
  args: [name = ''],
  options,
}: Call<{ role: string; expires: string }>): Promise<void> {
  const time = parseDuration(options.expires)
  if (time === undefined) throw new MusterError('USAGE', `${options.expires} is not a duration such as 12h or 90d`)
  const seconds = time / 1000
  if (seconds < 60 || seconds > LONGEST)
    throw new MusterError('USAGE', `a token is valid for 1m to 366d, not for ${options.expires}`)
  const body = { name, role: options.role, seconds }
  const made = await connect(io, options).send<{ token: string; info: Token }>('POST', '/api/v1/tokens', body)
  await out.result(made, () => [made.token])
  if (out.isForPeople)
    out.note(`${made.info.role} until ${made.info.expiresAt}; it is not shown again. Use it as MUSTER_TOKEN.`)
}

export async function ls({ io, out, options }: Call): Promise<void> {
  const { items } = await connect(io, options).get<{ items: Token[] }>('/api/v1/tokens')
  const now = new Date()
  await out.result(items, () =>
    table(
      ['ID', 'NAME', 'ROLE', 'MADE', 'BY', 'EXPIRES'],
      items.map(token => [
        token.id,
        token.name,
        token.role,
        `${ago(token.createdAt, now)} ago`,
        token.createdBy,
        token.expiresAt <= now.toISOString() ? 'expired' : token.expiresAt,
      ]),
    ),
  )
}

export async function revoke({ io, out, args: [id = ''], options }: Call): Promise<void> {
  await connect(io, options).send('DELETE', `/api/v1/tokens/${encodeURIComponent(id)}`)
  await out.result({ revoked: id }, () => [`token ${id} revoked`])
}
