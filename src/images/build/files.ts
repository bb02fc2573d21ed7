import {
  chmod,
  chown,
  lchown,
  lstat,
  readFile,
  readdir,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join, sep } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { createRenderer } from '../../lib/template.ts'
import { type SymlinkEntry, compareNames, parentOf } from '../../lib/tree/entry.ts'
import type { Plain } from '../../site/paths.ts'
import { whyTakenOut } from '../../site/leftovers.ts'
import type { Recipe } from '../../site/recipe.ts'
import { undefinedIn } from '../../site/render-recipe.ts'
import { type MergedTree, resolveIn } from '../layers/merge.ts'
import { makeLayerDirectory } from './clean.ts'
import { digestOfFiles } from './inputs.ts'
import type { Stage } from './stage.ts'

interface Placement {
  readonly target: string
  /** Absolute. */
  readonly source: string
  readonly owner: string
  readonly group: string
  readonly mode?: string
}

interface FilesStage extends Stage {
  /** Whether any of them is a template, so that the site's values count. */
  readonly isTemplated: boolean
}

/** The `files` of a recipe: single files and whole folders, templates rendered, owners by the names the image knows. */
export async function filesStage(recipeDir: string, recipe: Recipe, context: Plain): Promise<FilesStage | undefined> {
  const placements: Placement[] = []
  for (const [target, file] of Object.entries(recipe.files)) {
    const settings = typeof file === 'string' ? { source: file } : file
    const source = join(recipeDir, settings.source)
    await refuseOutside(recipeDir, source, settings.source)
    const { owner = 'root', group = 'root', mode } = settings
    placements.push({ target, source, owner, group, ...(mode !== undefined && { mode }) })
  }
  if (placements.length === 0) return undefined
  const renderer = createRenderer()
  const contentOf = async (source: string): Promise<string | Buffer> => {
    const content = await readFile(source)
    return source.endsWith('.j2') ? rendered(renderer, content, context, source) : content
  }
  // Of templates it is what they become that counts: a value of the site that none of them uses changes nothing.
  const contents = await Promise.all(placements.map(async ({ source }) => digestOfFiles(source, contentOf)))
  const isTemplated = (await Promise.all(placements.map(({ source }) => hasTemplates(source)))).some(Boolean)
  return {
    title: 'files',
    isTemplated,
    inputs: { files: recipe.files, contents },
    async make({ tree, upper }) {
      const users = await idsIn(tree, 'etc/passwd')
      const groups = await idsIn(tree, 'etc/group')
      // Links that the recipe itself places are followed inside the image as well, never on this machine.
      const links = new Map<string, SymlinkEntry>()
      const resolve = (path: string): string => resolveIn(at => links.get(at) ?? tree.get(at), path)
      for (const placement of placements) {
        const uid = idOf(users, placement.owner, 'user', placement.target)
        const gid = idOf(groups, placement.group, 'group', placement.target)
        const place = async (source: string, target: string): Promise<void> => {
          const stat = await lstat(source)
          if (stat.isDirectory()) {
            const path = resolve(target)
            refuseTakenOut(path, target)
            const isNew = tree.get(path)?.type !== 'directory'
            await makeLayerDirectory(upper, path, tree)
            if (isNew) await chown(join(upper, path), uid, gid)
            for (const name of (await readdir(source)).sort(compareNames))
              await place(join(source, name), `${target}/${name.endsWith('.j2') ? name.slice(0, -'.j2'.length) : name}`)
            return
          }
          const path = join(resolve(parentOf(target.slice(1))), target.slice(target.lastIndexOf('/') + 1))
          refuseTakenOut(path, target)
          await makeLayerDirectory(upper, parentOf(path), tree)
          const full = join(upper, path)
          await rm(full, { recursive: true, force: true })
          if (stat.isSymbolicLink()) {
            const leadsTo = await readlink(source)
            await symlink(leadsTo, full)
            await lchown(full, uid, gid)
            links.set(path, { type: 'symlink', path, target: leadsTo, mode: 0o777, uid, gid, mtime: 0 })
            return
          }
          const content = await contentOf(source)
          if (path === 'etc/machine-id' && content.length > 0) throw takenOut(target, 'is emptied in every image')
          await writeFile(full, content)
          await chown(full, uid, gid)
          await chmod(
            full,
            placement.mode === undefined
              ? (stat.mode & 0o100) === 0
                ? 0o644
                : 0o755
              : Number.parseInt(placement.mode, 8),
          )
        }
        await place(placement.source, placement.target)
      }
    },
  }
}

async function refuseOutside(recipeDir: string, source: string, name: string): Promise<void> {
  const real = await realpath(source).catch(() => undefined)
  if (real === undefined) throw new MusterError('RECIPE_INVALID', `files: there is no ${name} beside the recipe`)
  if (!`${real}${sep}`.startsWith(`${await realpath(recipeDir)}${sep}`))
    throw new MusterError('RECIPE_INVALID', `files: ${name} leads out of the folder of the recipe`)
}

/** The recipe itself was checked already; what a folder brings, and where links of the image lead, is only known now. */
function refuseTakenOut(path: string, target: string): void {
  const why = whyTakenOut(path)
  if (why !== undefined) throw takenOut(target, why)
}

const takenOut = (target: string, why: string): MusterError =>
  new MusterError('RECIPE_INVALID', `files: ${target}: ${why}`, {
    hint: 'leave it out, or choose another place for it',
  })

async function hasTemplates(source: string): Promise<boolean> {
  if ((await lstat(source)).isSymbolicLink()) return false
  if (source.endsWith('.j2')) return true
  const names = await readdir(source).catch(() => [])
  return (await Promise.all(names.map(name => hasTemplates(join(source, name))))).some(Boolean)
}

function rendered(
  renderer: ReturnType<typeof createRenderer>,
  content: Buffer,
  context: Plain,
  source: string,
): string {
  const text = content.toString('utf8')
  try {
    return renderer.renderText(text, context)
  } catch (error) {
    if (!(error instanceof MusterError)) throw error
    const why = undefinedIn(error, text, context)?.message ?? error.message
    throw new MusterError('TEMPLATE_INVALID', `${source.split('/').slice(-2).join('/')}: ${why}`, { cause: error })
  }
}

/** root:x:0:0:… → root is 0 */
async function idsIn(tree: MergedTree, path: string): Promise<Map<string, number>> {
  const entry = tree.get(tree.resolve(path))
  const text = entry?.type === 'file' ? await readFile(tree.locate(entry), 'utf8') : ''
  const lines = text.split('\n').map(line => line.split(':'))
  return new Map([
    ['root', 0],
    ...lines.flatMap(([name = '', , id = '']) => (/^\d+$/.test(id) ? [[name, Number(id)] as const] : [])),
  ])
}

function idOf(known: ReadonlyMap<string, number>, name: string, kind: 'user' | 'group', target: string): number {
  const id = known.get(name)
  if (id === undefined)
    throw new MusterError('RECIPE_INVALID', `files: ${target}: the image has no ${kind} ${name}`, {
      hint: `install the package that brings the ${kind}, or make it in a step and put the file there too`,
    })
  return id
}
