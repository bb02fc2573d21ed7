import { parse } from 'yaml'
import { MusterError } from '../../lib/errors.ts'
import { type FileEdits, type Settings, settingMessage } from '../../site/edit.ts'
import type { Site } from '../../site/site.ts'
import { confirm } from '../ask.ts'
import { connect } from '../connect.ts'
import type { Call } from '../define.ts'
import { appliedLines, applyAfterEdit } from './site-server.ts'

interface EditOptions {
  readonly message?: string
  readonly apply?: boolean
  readonly yes?: boolean
  readonly cluster?: string
  readonly file?: string
}

interface Edited {
  readonly commit: string
  readonly files: readonly string[]
}

/** One change, by either way: the server edits its site, or, with --site, this process edits that directory. */
interface Change {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body: Record<string, unknown>
  readonly message: string
  plan(edits: typeof import('../../site/edit.ts'), site: Site): FileEdits
}

export async function nodeAdd(call: Call<EditOptions>): Promise<void> {
  const [nodes = ''] = call.args
  const set = parseSettings(call.rest)
  const { cluster, file } = call.options
  await make(call, {
    method: 'POST',
    path: '/api/v1/nodes',
    body: { nodes, set, cluster, file },
    message: `Add ${nodes}`,
    plan: (edits, site) => edits.addNodes(site, nodes, set, { cluster, file }),
  })
}

export async function nodeSet(call: Call<EditOptions>): Promise<void> {
  const [nodes = ''] = call.args
  const set = someSettings(call.rest)
  await make(call, {
    method: 'PATCH',
    path: '/api/v1/nodes',
    body: { nodes, set },
    message: settingMessage(set, nodes),
    plan: (edits, site) => edits.setNodes(site, nodes, set),
  })
}

export async function nodeRm(call: Call<EditOptions>): Promise<void> {
  const [nodes = ''] = call.args
  await confirm(call.io, `remove ${nodes} from the site?`, call.options.yes)
  await make(call, {
    method: 'DELETE',
    path: '/api/v1/nodes',
    body: { nodes },
    message: `Remove ${nodes}`,
    plan: (edits, site) => edits.removeNodes(site, nodes),
  })
}

export async function groupAdd(call: Call<EditOptions>): Promise<void> {
  const [name = ''] = call.args
  const set = parseSettings(call.rest)
  await make(call, {
    method: 'POST',
    path: '/api/v1/groups',
    body: { name, set },
    message: `Add group ${name}`,
    plan: (edits, site) => edits.addGroup(site, name, set),
  })
}

export async function groupSet(call: Call<EditOptions>): Promise<void> {
  const [name = ''] = call.args
  const set = someSettings(call.rest)
  await make(call, {
    method: 'PATCH',
    path: `/api/v1/groups/${encodeURIComponent(name)}`,
    body: { set },
    message: settingMessage(set, `group ${name}`),
    plan: (edits, site) => edits.setGroup(site, name, set),
  })
}

export async function groupRm(call: Call<EditOptions>): Promise<void> {
  const [name = ''] = call.args
  await confirm(call.io, `remove group ${name} from the site?`, call.options.yes)
  await make(call, {
    method: 'DELETE',
    path: `/api/v1/groups/${encodeURIComponent(name)}`,
    body: {},
    message: `Remove group ${name}`,
    plan: (edits, site) => edits.removeGroup(site, name),
  })
}

async function make(call: Call<EditOptions>, change: Change): Promise<void> {
  const { io, out, options } = call
  const message = options.message ?? change.message
  const dir = options.site ?? io.env['MUSTER_SITE']
  const edited = dir === undefined ? await byServer(call, change, message) : await here(dir, change, message)
  const applied = options.apply === true ? await applyAfterEdit(io, options) : undefined
  await out.result({ ...edited, ...(applied && { applied }) }, () => [
    edited.files.length === 0
      ? 'nothing to change: the site says so already'
      : `${edited.files.join(', ')}: committed as ${edited.commit.slice(0, 10)} "${message}"`,
    ...(applied === undefined ? [] : appliedLines(out, applied)),
    ...(applied === undefined && edited.files.length > 0 ? ['next: muster site diff, then muster site apply'] : []),
  ])
}

const byServer = (
  { io, options }: Call<EditOptions>,
  { method, path, body }: Change,
  message: string,
): Promise<Edited> => connect(io, options).send<Edited>(method, path, { ...body, message })

async function here(dir: string, change: Change, message: string): Promise<Edited> {
  const [{ openWorkspace }, edits] = await Promise.all([
    import('../../site/workspace.ts'),
    import('../../site/edit.ts'),
  ])
  return (await openWorkspace(dir)).change(site => change.plan(edits, site), message)
}

/** 'boot.args+=quiet' → { 'boot.args+': ['quiet'] }; 'boot.root=ram' → { 'boot.root': 'ram' }; 'boot.root=' → null, taken out. */
export function parseSettings(words: readonly string[]): Settings {
  const settings: Record<string, unknown> = {}
  for (const word of words) {
    const [, path, append, text] = /^([^=]+?)(\+?)=(.*)$/s.exec(word) ?? []
    if (path === undefined || text === undefined)
      throw new MusterError('USAGE', `${word} is not a setting: write path=value`)
    const value = text === '' ? null : parseValue(word, text)
    if (append === '+') {
      const before = settings[`${path}+`]
      settings[`${path}+`] = [...(Array.isArray(before) ? before : []), ...(Array.isArray(value) ? value : [value])]
    } else settings[path] = value
  }
  return settings
}

function someSettings(words: readonly string[]): Settings {
  if (words.length === 0) throw new MusterError('USAGE', 'nothing to set: write path=value')
  return parseSettings(words)
}

/** As YAML would read it: 3 is a number, [a, b] a list; what is no valid YAML is plain text. */
function parseValue(word: string, text: string): unknown {
  if (/\{\{|\{%/.test(text)) return text
  try {
    return parse(text, { maxAliasCount: 0 }) as unknown
  } catch (error) {
    throw new MusterError('USAGE', `${word}: the value is not valid YAML`, { cause: error, hint: 'put it in quotes' })
  }
}
