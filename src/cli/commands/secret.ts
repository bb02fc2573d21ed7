import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { decrypt, generateKey, parseKeyFile } from '../../lib/age.ts'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { encryptFor, rotation, storedSecrets } from '../../site/secrets.ts'
import { type Workspace, openWorkspace } from '../../site/workspace.ts'
import { answerOf } from '../ask.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { type Io, readAll } from '../io.ts'
import { readKeys, writeKeyFile } from '../keys.ts'
import { plural, table } from '../output.ts'

interface SecretOptions {
  readonly key?: string
  readonly message?: string
}

const workspaceOf = async ({ io, options }: Call<SecretOptions>): Promise<Workspace> =>
  openWorkspace(await siteDir(io, options))

export async function keygen(call: Call<SecretOptions>): Promise<void> {
  const { io, out, options } = call
  const workspace = await workspaceOf(call)
  if (options.key === undefined) throw new MusterError('USAGE', 'say where the key shall go: --key FILE')
  const key = await generateKey()
  const content = `# public key: ${key.recipient}\n${key.identity}\n`
  const file = await writeKeyFile(io, options.key, content, workspace, {
    edit: site =>
      new Map([
        ['site.yaml', [{ op: 'set', path: ['secrets', 'recipients'], value: [...site.recipients, key.recipient] }]],
      ]),
    message: options.message ?? 'Add a recipient of secrets',
  })
  await out.result({ key: file, recipient: key.recipient }, () => [
    `key written to ${options.key}, readable by you alone: keep a copy in a safe place`,
    `recipient ${key.recipient} added to site.yaml, committed`,
    'next: muster secret set FILE PATH',
  ])
}

export async function set(call: Call<SecretOptions>): Promise<void> {
  const [file = '', path = ''] = call.args
  const workspace = await workspaceOf(call)
  const text = await askSecret(call.io)
  if (text === '')
    throw new MusterError('USAGE', 'the value is empty', { hint: 'give it on standard input, or type it when asked' })
  await store(call, workspace, file, pathOf(path), text)
}

export async function edit(call: Call<SecretOptions>): Promise<void> {
  const [file = '', path = ''] = call.args
  const workspace = await workspaceOf(call)
  const found = storedSecrets(await workspace.open()).find(
    secret => secret.file === file && secret.path.join('.') === path,
  )
  if (found === undefined)
    throw new MusterError('PATH_UNKNOWN', `there is no secret ${path} in ${file}`, {
      hint: 'list them with: muster secret ls',
    })
  const before = await decrypt(found.armored, await keysOf(call))
  const after = await inEditor(call.io, before)
  if (after === before) call.out.note('unchanged')
  else await store(call, workspace, file, found.path, after)
}

export async function ls(call: Call<SecretOptions>): Promise<void> {
  const site = await (await workspaceOf(call)).open()
  const secrets = storedSecrets(site).map(({ file, line, path }) => ({ file, line, path: path.join('.') }))
  await call.out.result({ recipients: site.recipients, secrets }, () => [
    ...table(
      ['WHERE', 'PATH'],
      secrets.map(({ file, line, path }) => [`${file}:${line}`, path]),
    ),
    `for ${plural(site.recipients.length, 'recipient')}: ${site.recipients.join(', ') || 'none'}`,
  ])
}

export async function rotate(call: Call<SecretOptions>): Promise<void> {
  const workspace = await workspaceOf(call)
  const keys = await keysOf(call)
  let count = 0
  const done = await workspace.change(async site => {
    const edits = await rotation(site, keys)
    count = [...edits.values()].flat().length
    if (count === 0) throw new MusterError('EDIT_INVALID', 'the site has no secrets')
    return edits
  }, call.options.message ?? 'Encrypt secrets anew')
  await call.out.result({ ...done, secrets: count }, () => [
    `${plural(count, 'secret')} encrypted anew, committed as ${done.commit.slice(0, 10)}`,
  ])
}

async function store(
  { out, options }: Call<SecretOptions>,
  workspace: Workspace,
  file: string,
  path: readonly string[],
  text: string,
): Promise<void> {
  const done = await workspace.change(
    async site => new Map([[file, [{ op: 'set', path, value: await encryptFor(site, text), tag: '!age' }]]]),
    options.message ?? `Set secret ${path.join('.')} in ${file}`,
  )
  await out.result({ ...done, file, path: path.join('.') }, () => [
    `${file}: ${path.join('.')} encrypted, committed as ${done.commit.slice(0, 10)}`,
  ])
}

const pathOf = (text: string): string[] => {
  const path = text.split('.')
  if (path.some(key => key === ''))
    throw new MusterError('USAGE', `${JSON.stringify(text)} is not a path such as defaults.vars.munge_key`)
  return path
}

async function keysOf({ io, options }: Call<SecretOptions>): Promise<string[]> {
  const text = await readKeys(io, options.key)
  if (text === undefined)
    throw new MusterError('SECRET_KEY_MISSING', 'no key was given', {
      hint: 'give it with --key FILE or MUSTER_AGE_KEY_FILE',
    })
  return parseKeyFile(text)
}

async function askSecret(io: Io): Promise<string> {
  if (io.stdin.isTTY !== true) return (await readAll(io.stdin)).replace(/\n$/, '')
  const silent = new Writable({ write: (_, __, done) => done() })
  // First the terminal is told not to show what is typed, then somebody is asked to type.
  const terminal = createInterface({ input: io.stdin, output: silent, terminal: true })
  io.stderr.write('value (not shown): ')
  try {
    return await answerOf(io, terminal.question('', { signal: io.interrupted }))
  } finally {
    terminal.close()
    io.stderr.write('\n')
  }
}

/** In memory where there is a tmpfs for it, readable by nobody else, and gone afterwards. */
async function inEditor(io: Io, text: string): Promise<string> {
  const base = await realpath(io.env['XDG_RUNTIME_DIR'] ?? '/dev/shm').catch(() => tmpdir())
  const dir = await mkdtemp(join(base, 'muster-'))
  try {
    const file = join(dir, 'secret')
    await writeFile(file, text, { mode: 0o600 })
    const [editor = 'vi', ...args] = (io.env['VISUAL'] || io.env['EDITOR'] || 'vi').split(' ')
    await exec(editor, [...args, file], { interactive: true })
    const after = await readFile(file, 'utf8')
    // Editors put a newline at the end of every file.
    return text.endsWith('\n') ? after : after.replace(/\n$/, '')
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
