import { keyId, newPrivateKey, parsePrivateKey, publicText } from '../../images/trust/keys.ts'
import { MusterError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/suggest.ts'
import { type Workspace, openWorkspace } from '../../site/workspace.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { writeKeyFile } from '../keys.ts'
import { table } from '../output.ts'

interface KeyOptions {
  readonly message?: string
}

const workspaceOf = async ({ io, options }: Call<KeyOptions>): Promise<Workspace> =>
  openWorkspace(await siteDir(io, options))

export async function create(call: Call<KeyOptions & { signingKey?: string; until?: string }>): Promise<void> {
  const {
    io,
    out,
    options,
    args: [name = ''],
  } = call
  if (options.signingKey === undefined)
    throw new MusterError('USAGE', 'say where the private key shall go: --signing-key FILE')
  const workspace = await workspaceOf(call)
  const site = await workspace.open()
  if (Object.hasOwn(site.trust.keys, name))
    throw new MusterError('USAGE', `the site has a key ${name} already`, { hint: 'choose another name' })
  const pem = newPrivateKey()
  const publicKey = publicText(parsePrivateKey(pem, options.signingKey))
  const value = { public: publicKey, ...(options.until !== undefined && { until: options.until }) }
  const file = await writeKeyFile(io, options.signingKey, pem, workspace, {
    edit: () => new Map([['site.yaml', [{ op: 'set', path: ['trust', 'keys', name], value }]]]),
    message: options.message ?? `Trust the key ${name}`,
  })
  await out.result({ name, id: keyId(publicKey), public: publicKey, file }, () => [
    `private key written to ${options.signingKey}, readable by you alone`,
    `${name} (${keyId(publicKey)}) added to trust.keys of site.yaml, committed`,
    `next: muster image sign IMAGE --signing-key ${options.signingKey}`,
  ])
}

export async function ls(call: Call<KeyOptions>): Promise<void> {
  const { keys } = (await (await workspaceOf(call)).open()).trust
  const today = new Date().toISOString().slice(0, 10)
  const rows = Object.entries(keys).map(([name, key]) => ({ name, id: keyId(key.public), ...key }))
  const stateOf = ({ revoked, until }: (typeof rows)[number]): string => {
    if (revoked !== undefined) return `revoked ${revoked}`
    if (until === undefined) return 'good'
    return until < today ? `expired ${until}` : `good until ${until}`
  }
  await call.out.result(rows, () =>
    table(
      ['NAME', 'ID', 'STATE', 'PUBLIC'],
      rows.map(row => [row.name, row.id, stateOf(row), row.public]),
    ),
  )
}

/** What it signed is refused from the next apply on. */
export async function revoke(call: Call<KeyOptions>): Promise<void> {
  const {
    out,
    options,
    args: [name = ''],
  } = call
  const workspace = await workspaceOf(call)
  const { keys } = (await workspace.open()).trust
  if (!Object.hasOwn(keys, name))
    throw new MusterError('KEY_INVALID', `the site has no key ${name}${didYouMean(name, Object.keys(keys))}`, {
      hint: 'list them with: muster key ls',
    })
  const revoked = new Date().toISOString().slice(0, 10)
  if (keys[name]?.revoked === undefined)
    await workspace.change(
      () => new Map([['site.yaml', [{ op: 'set', path: ['trust', 'keys', name, 'revoked'], value: revoked }]]]),
      options.message ?? `Revoke the key ${name}`,
    )
  await out.result({ name, revoked: keys[name]?.revoked ?? revoked }, () => [
    `key ${name} revoked, committed; next: muster site apply`,
  ])
}
