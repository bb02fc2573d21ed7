import type { Entry } from '../../lib/tree/entry.ts'
import type { Recipe } from '../../site/recipe.ts'
import { withTool } from './sandbox.ts'
import type { Stage } from './stage.ts'

const NAMED: Readonly<Record<string, readonly string[]>> = {
  // Everything but the C locales and English messages.
  locales: ['/usr/share/locale/*', '/usr/share/i18n/locales/*', '/usr/lib/locale/!(C.utf8|C.UTF-8)'],
  documentation: [
    '/usr/share/doc/**!(copyright)',
    '/usr/share/man/*',
    '/usr/share/info/*',
    '/usr/share/gtk-doc',
    '/usr/share/lintian',
  ],
  caches: ['/var/cache/*/*', '/var/lib/apt/lists/*', '/usr/share/mime/mime.cache'],
}

/** Takes things out of the image: what packages bring and no node needs. */
export function pruneStage(recipe: Recipe): Stage | undefined {
  if (recipe.prune.length === 0) return undefined
  return {
    title: 'prune',
    inputs: { prune: recipe.prune, named: NAMED },
    async make({ tree, overlay, sandbox }) {
      const paths = prunedPaths(tree.entries, recipe.prune)
      if (paths.length === 0) return
      // Paths of the tree itself: no part of them is a symbolic link, so nothing else can be reached.
      const remove = 'cd /target; exec xargs --null rm --recursive --force --one-file-system --'
      await withTool(overlay, ['sh', '-euc', remove], { ...sandbox, input: paths.map(path => `${path}\0`).join('') })
    },
  }
}

/** The paths that match, without those below another that matches. */
export function prunedPaths(entries: readonly Entry[], prune: readonly string[]): string[] {
  const matchers = prune.flatMap(item => NAMED[item] ?? [item]).map(globToRegExp)
  const found: string[] = []
  for (const { path } of entries) {
    const last = found.at(-1)
    if (path === '' || (last !== undefined && path.startsWith(`${last}/`))) continue
    if (matchers.some(matcher => matcher.test(path))) found.push(path)
  }
  return found
}

/** `*` matches within a name, `**` any depth, `!(a|b)` any name but these. */
export function globToRegExp(glob: string): RegExp {
  const source = glob
    .replace(/^\/+/, '')
    .replace(/\/+$/, '')
    .replaceAll(
      /\*\*!\(([^)]*)\)|!\(([^)]*)\)|\*\*\/?|\*|\?|[\\^$.|+()[\]{}]/g,
      (text, deepNot?: string, not?: string) => {
        if (deepNot !== undefined) return `.*/(?!(?:${names(deepNot)})$)[^/]+`
        if (not !== undefined) return `(?!(?:${names(not)})$)[^/]+`
        if (text === '**/') return '(?:.*/)?'
        if (text === '**') return '.*'
        if (text === '*') return '[^/]*'
        return text === '?' ? '[^/]' : `\\${text}`
      },
    )
  return new RegExp(`^${source}$`, 's')
}

const names = (list: string): string =>
  list
    .split('|')
    .map(name => name.replaceAll(/[\\^$.*+?()[\]{}]/g, String.raw`\$&`))
    .join('|')
