import { MusterError } from '../../lib/errors.ts'
import { humanSize } from '../../lib/size.ts'
import { didYouMean } from '../../lib/suggest.ts'
import { FileRenderer, type NodeFile } from '../../site/render-files.ts'
import { nodeNamed, openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { table } from '../output.ts'

/** What stands where a secret would: it is opened for the node alone. */
const HIDDEN = '(secret)'

/** The files of a node as the site has them now; with a path, what is in that one. */
export async function show({ io, out, args: [name = '', path], options }: Call): Promise<number> {
  const source = await directorySource(await siteDir(io, options))
  const site = await openSite(source)
  const renderer = new FileRenderer(site, source, () => Promise.resolve(HIDDEN))
  const files = await renderer.render(nodeNamed(site, name))
  if (path !== undefined) {
    const { content, ...file } = oneOf(files, name, path)
    await out.result({ ...file, content }, () => [content.replace(/\n$/, '')])
    return 0
  }
  await out.result(files.map(listed), () => table(['PATH', 'FROM', 'OWNER', 'MODE', 'SIZE'], files.map(rowOf)))
  return files.some(file => 'problem' in file) ? 1 : 0
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
  return { ...listed(file), content: file.content.toString('utf8') }
}

function listed(file: NodeFile): object {
  const { path, source, owner, group, mode } = file
  const about = { path, source, owner, group, mode }
  return 'problem' in file
    ? { ...about, problem: file.problem }
    : { ...about, size: file.content.length, secret: file.isSecret }
}

const rowOf = (file: NodeFile): string[] => [
  file.path,
  file.source,
  `${file.owner}:${file.group}`,
  file.mode,
  'problem' in file ? file.problem : file.isSecret ? 'holds a secret' : humanSize(file.content.length),
]
