import { MusterError } from '../../lib/errors.ts'
import { humanSize } from '../../lib/size.ts'
import { didYouMean } from '../../lib/suggest.ts'
import { FileRenderer, type NodeFile } from '../../site/render-files.ts'
import { nodeNamed, openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import type { FileItem, NodeFilesReply } from '../../api/schemas.ts'
import { connect, findSiteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { table } from '../output.ts'

/** What stands where a secret would: it is opened for the node alone. */
const HIDDEN = '(secret)'

/** The files of a node as the site has them now, or those that the server gives it; with a path, what is in that one. */
export async function show(call: Call): Promise<number> {
  const { io, out, options } = call
  const [name = '', path] = call.args
  const dir = await findSiteDir(io, options)
  if (dir === undefined || options.server !== undefined) return showApplied(call)
  const source = await directorySource(dir)
  const site = await openSite(source)
  const renderer = new FileRenderer(site, source, () => Promise.resolve(HIDDEN))
  const files = await renderer.render(nodeNamed(site, name))
  if (path !== undefined) {
    const { content, ...file } = oneOf(files, name, path)
    await out.result({ ...file, content }, () => [content.replace(/\n$/, '')])
    return 0
  }
  await out.result(files.map(listed), () => table(['PATH', 'FROM', 'OWNER', 'MODE', 'WHEN', 'SIZE'], files.map(rowOf)))
  return files.some(file => 'problem' in file) ? 1 : 0
}

const ask = ({ io, options }: Call<object>, name = '', path?: string): Promise<NodeFilesReply> =>
  connect(io, options).get<NodeFilesReply>(`/api/v1/nodes/${encodeURIComponent(name)}/files`, { path })

/** What the server has for it, which is what was applied. */
async function showApplied(call: Call): Promise<number> {
  const reply = await ask(call, ...call.args)
  const [only] = call.args[1] === undefined ? [] : reply.files
  await call.out.result(only ?? reply, () => {
    if (only !== undefined) return [appliedText(only)]
    const rows = reply.files.map(file => [
      file.path,
      file.kind === 'link' ? `→ ${file.target}` : file.kind,
      file.owner === undefined ? '' : `${file.owner}:${file.group}`,
      file.mode ?? '',
      whenOf(file),
      file.secret === true ? 'holds a secret' : file.size === undefined ? '' : humanSize(file.size),
    ])
    return [...table(['PATH', 'KIND', 'OWNER', 'MODE', 'WHEN', 'SIZE'], rows), ...problemsOf(reply)]
  })
  return reply.problems.length > 0 && only === undefined ? 1 : 0
}

function appliedText({ kind, secret, size, content, target }: FileItem): string {
  if (secret === true) return `secret, ${size} bytes`
  if (kind === 'file') return (content ?? '').replace(/\n$/, '')
  return kind === 'link' ? `a link to ${target}` : kind === 'dir' ? 'a folder' : 'must be absent'
}

const problemsOf = ({ problems }: NodeFilesReply): string[] =>
  problems.map(({ path, reason, kept }) => `${path}: ${reason}; ${kept ? 'the last good one stays' : 'it gets none'}`)

const SIGNS = { missing: '+', unwanted: '-', different: '~' } as const

/** What a node said that it has, against what it is to have. */
export async function diff(call: Call<{ readonly exitCode?: boolean }>): Promise<number> {
  const { node, version, has, differences, problems } = await ask(call, call.args[0])
  const isSame = has !== null && (differences?.length === 0 || has.version === version)
  await call.out.result({ node, version, has, differences, problems }, () => {
    if (has === null) return [`${node} has not said which files it has`]
    const known = differences?.map(({ path, change, what }) => [`${SIGNS[change]} ${path}`, what.join(', ') || change])
    if (isSame) return [`${node} has the files it is to have (${has.version})`]
    return [
      `${node} has ${has.version} since ${has.since}, and is to have ${version ?? 'no files'}`,
      ...(known === undefined ? ['what it has was not remembered'] : table(['PATH', 'WHAT'], known)),
    ]
  })
  return call.options.exitCode === true && !isSame ? 1 : 0
}

function oneOf(files: readonly NodeFile[], name: string, path: string): object & { readonly content: string } {
  const file = files.find(one => one.path === path)
  if (file === undefined) {
    const meant = didYouMean(
      path,
      files.map(one => one.path),
    )
    const hint = `muster files show ${name} lists what it gets`
    throw new MusterError('PATH_UNKNOWN', `${name} gets no ${path}${meant}`, { hint })
  }
  if ('problem' in file) throw new MusterError('TEMPLATE_INVALID', file.problem)
  return { ...listed(file), content: contentOf(file) }
}

function contentOf(file: Exclude<NodeFile, { problem: string }>): string {
  if (file.kind === 'file') return file.content.toString('utf8')
  return file.kind === 'link' ? `a link to ${file.target}` : file.kind === 'dir' ? 'a folder' : 'must be absent'
}

function listed(file: NodeFile): object {
  if (file.kind !== 'file') return file
  const { kind, path, source, owner, group, mode, when, run } = file
  const about = { kind, path, source, owner, group, mode, when, ...(run !== undefined && { run }) }
  return 'problem' in file
    ? { ...about, problem: file.problem }
    : { ...about, size: file.content.length, secret: file.isSecret }
}

const whenOf = ({ when, run }: { readonly when: string; readonly run?: string | undefined }): string =>
  run === undefined ? when : `${when}, then ${run}`

function rowOf(file: NodeFile): string[] {
  if (file.kind === 'problem') return [file.path, '', '', '', '', file.problem]
  const when = whenOf(file)
  if (file.kind === 'link') return [file.path, `→ ${file.target}`, '', '', when, '']
  if (file.kind === 'absent') return [file.path, 'absent', '', '', when, '']
  const { path, source, owner, group, mode } = file
  return [path, source, `${owner}:${group}`, mode, when, sizeOf(file)]
}

function sizeOf(file: Extract<NodeFile, { kind: 'file' | 'dir' }>): string {
  if (file.kind === 'dir') return 'folder'
  return 'problem' in file ? file.problem : file.isSecret ? 'holds a secret' : humanSize(file.content.length)
}
