import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AuthorityReply, NodeItem } from '../../api/schemas.ts'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { fold } from '../../lib/nodeset/index.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { plural, table } from '../output.ts'

const PAGE = 50_000
/** Requests at once. */
const AT_ONCE = 16

export async function show({ io, out, options }: Call): Promise<void> {
  const found = await connect(io, options).get<AuthorityReply>('/api/v1/ca')
  await out.result(found, () => linesOf(found))
}

export async function renew({ io, out, options }: Call): Promise<void> {
  const made = await connect(io, options).send<AuthorityReply>('POST', '/api/v1/ca/renew')
  await out.result(made, () => linesOf(made))
}

export async function exportCertificate({ io, out, args: [file], options }: Call): Promise<void> {
  const { certificate, sha256 } = await connect(io, options).get<AuthorityReply>('/api/v1/ca')
  if (file === undefined) {
    await out.result({ certificate, sha256 }, () => [certificate.trimEnd()])
    return
  }
  const path = resolve(io.cwd, file)
  await writeFile(path, certificate).catch((error: unknown) => {
    throw new MusterError('FILE_UNWRITABLE', `${path} cannot be written: ${messageOf(error)}`, { cause: error })
  })
  await out.result({ file: path, sha256 }, () => [`${path}  sha256 ${sha256}`])
}

export async function revoke({ io, out, args: [nodes = ''], options }: Call): Promise<void> {
  const client = connect(io, options)
  const names: string[] = []
  for await (const page of client.pages<NodeItem>('/api/v1/nodes', { nodes, limit: PAGE }))
    names.push(...page.map(({ name }) => name))
  if (names.length === 0) throw new MusterError('NODE_UNKNOWN', `no such node: ${nodes}`)
  const left = [...names]
  const work = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift())
      await client.send('POST', `/api/v1/nodes/${encodeURIComponent(name)}/revoke`)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const set = fold(names)
  await out.result({ revoked: set, count: names.length }, () => [
    `${set}: ${plural(names.length, 'node')} revoked until the next boot`,
  ])
}

const linesOf = ({ authority, sha256, server }: AuthorityReply): string[] =>
  table(
    ['CERTIFICATE', 'VALID FROM', 'UNTIL', 'SHA-256', 'FOR'],
    [
      [
        authority.subject,
        authority.from,
        authority.until,
        authority.fingerprint,
        'signing servers; as text: ' + sha256,
      ],
      ...(server === undefined
        ? []
        : [[server.subject, server.from, server.until, server.fingerprint, server.hosts.join(' ')]]),
    ],
  )
