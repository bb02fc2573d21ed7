import { MusterError } from '../lib/errors.ts'
import { didYouMean } from '../lib/suggest.ts'
import { createRenderer, isTemplate, referencedPaths, undefinedPath, valueIn } from '../lib/template.ts'
import type { ListTree, MapTree, Place, Tree } from '../lib/yaml/tree.ts'
import type { SiteFile } from './files.ts'
import { type Branch, type Layer, type Value, valueAt } from './layers.ts'
import { type Plain, isMap } from './paths.ts'
import type { Problem } from './problems.ts'
import { Recipe } from './recipe.ts'
import type { Site } from './site.ts'
import { plainOf, treeAt, validateTree } from './validate.ts'

/** A recipe with its templates rendered, or what is wrong with it. */
export interface SiteRecipe {
  readonly name: string
  /** Path of the file in the site. */
  readonly file: string
  readonly recipe?: Recipe
  /** What templates see: `vars` and more; also for the files of the image. */
  readonly context: Plain
  readonly problems: readonly Problem[]
  /** Whether any of its templates looks at the site's values. */
  readonly usesVars: boolean
  /** Where a value stands, for messages. */
  placeOf(path: readonly string[]): Place
}

export const recipeNames = (site: Site): string[] => recipeFiles(site).map(file => file.name)

const recipeFiles = (site: Site): SiteFile[] => site.files.files.filter(file => file.kind === 'image')

/**
 * Reads images/NAME/image.yaml: `vars` come from the recipe, then from the site's defaults, then from the groups it names,
 * so that a group can give its image more packages from the group's own file.
 */
export function readRecipe(site: Site, name: string): SiteRecipe {
  const file = recipeFiles(site).find(candidate => candidate.name === name)
  if (file === undefined)
    throw new MusterError('RECIPE_UNKNOWN', `there is no recipe ${name}${didYouMean(name, recipeNames(site))}`)
  const tree = file.tree ?? { kind: 'map', entries: new Map(), line: 1, column: 1 }
  const problems: Problem[] = [...file.problems]
  const { context, broken } = contextOf(site, file, tree, problems)
  const rendered = renderMap(tree, context, (place, path, message, missing) => {
    // What is wrong with a value it uses has been told: that is the cause.
    if (!broken.has(missing?.slice(0, 2).join('.') ?? ''))
      problems.push({ file: file.path, line: place.line, column: place.column, path, message })
  })
  if (problems.length === 0) problems.push(...validateTree(file.path, rendered, Recipe))
  const parsed = problems.length === 0 ? Recipe.safeParse(plainOf(rendered)) : undefined
  return {
    name,
    file: file.path,
    context,
    problems,
    usesVars: templatesOf(tree).length > 0,
    ...(parsed?.data && { recipe: parsed.data }),
    placeOf: path => treeAt(rendered, path) ?? { line: 1, column: 1 },
  }
}

/** Everything wrong with the recipes of a site: what is in them, and images that are built on each other in a circle or on nothing. */
export function checkRecipes(site: Site): Problem[] {
  const recipes = new Map(recipeNames(site).map(name => [name, readRecipe(site, name)]))
  const problems = [...recipes.values()].flatMap(recipe => recipe.problems)
  const reported = new Set<string>()
  for (const { name } of recipes.values()) {
    const circle = baseCircle(name, recipes)
    if (circle === undefined || circle.some(member => reported.has(member))) continue
    for (const member of circle) reported.add(member)
    problems.push(problemAt(recipes.get(circle[0] ?? ''), ['from', 'image'], circleText(circle)))
  }
  return problems
}

const problemAt = (recipe: SiteRecipe | undefined, path: readonly string[], message: string): Problem => {
  const { line, column } = recipe?.placeOf(path) ?? { line: 1, column: 1 }
  return { file: recipe?.file ?? '', line, column, path: path.join('.'), message }
}

export const circleText = (circle: readonly string[]): string =>
  `images are built on each other in a circle: ${circle.join(' → ')}`

/** base → compute → base, or undefined when its bases end somewhere. */
function baseCircle(name: string, recipes: ReadonlyMap<string, SiteRecipe>): string[] | undefined {
  const path: string[] = []
  for (let next: string | undefined = name; next !== undefined; next = baseOf(recipes.get(next))) {
    if (path.includes(next)) return [...path.slice(path.indexOf(next)), next]
    path.push(next)
  }
  return undefined
}

const baseOf = (recipe: SiteRecipe | undefined): string | undefined =>
  recipe?.recipe?.from.kind === 'image' ? recipe.recipe.from.settings : undefined

interface Context {
  readonly context: Plain
  /** What it should have and could not be worked out: vars.suite. */
  readonly broken: ReadonlySet<string>
}

function contextOf(site: Site, file: SiteFile, tree: MapTree, problems: Problem[]): Context {
  const groups = groupsOf(site, file, tree, problems)
  const own = tree.entries.get('vars')
  const recipeLayer: Layer = {
    name: `recipe ${file.name}`,
    file: file.path,
    tree: { ...tree, entries: new Map(own === undefined ? [] : [['vars', own]]) },
  }
  const layers = [
    recipeLayer,
    ...(site.files.files.find(candidate => candidate.kind === 'site')?.layers ?? []),
    ...groups.flatMap(group => site.groups.get(group)?.file.layers ?? []),
  ]
  const merged = site.memory.merger.merge(layers)
  const vars = valueAt(merged, ['vars'])
  const root: Branch = { kind: 'branch', entries: new Map(vars === undefined ? [] : [['vars', vars]]) }
  const facts = { name: file.name, cluster: '', groups, site: site.name, numbers: [], index: undefined }
  const resolved = site.memory.resolver.resolve(root, facts)
  // Values that only make sense for a node (`index`) are none of a recipe's business, unless it uses them.
  const used = usedBy(templatesOf(tree), merged)
  const isUsed = ({ path = '' }: Problem): boolean =>
    used.has('vars') || used.has(path.split('.').slice(0, 2).join('.'))
  const told = resolved.problems.filter(isUsed).map(({ file: at, line, column, path, message }) => ({
    file: at,
    line,
    column,
    message,
    ...(path !== undefined && { path }),
  }))
  problems.push(...told)
  const worked = (resolved.value['vars'] ?? {}) as Plain
  const broken =
    told.length > 0 && vars?.kind === 'branch' ? [...vars.entries.keys()].filter(name => !(name in worked)) : []
  return {
    context: { vars: withoutSecrets(worked), name: file.name, site: site.name },
    broken: new Set(broken.map(name => `vars.${name}`)),
  }
}

/** No secret is ever in an image: to a recipe they do not exist. */
function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (!isMap(value)) return value
  const kept = Object.entries(value).filter(([, item]) => !(isMap(item) && '$secret' in item))
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutSecrets(item)]))
}

function groupsOf(site: Site, file: SiteFile, tree: MapTree, problems: Problem[]): string[] {
  const entry = tree.entries.get('group')?.value
  const named = entry === undefined ? [] : entry.kind === 'list' ? entry.items : [entry]
  const lineage: string[] = []
  for (const item of named) {
    if (item.kind !== 'scalar') continue
    const group = site.groups.get(String(item.value))
    if (group === undefined) {
      const message = `there is no group ${String(item.value)}${didYouMean(String(item.value), site.groups.keys())}`
      problems.push({ file: file.path, line: item.line, column: item.column, path: 'group', message })
    }
    for (const member of group?.lineage ?? []) if (!lineage.includes(member)) lineage.push(member)
  }
  return lineage
}

function templatesIn(tree: Tree): string[] {
  if (tree.kind === 'scalar') return typeof tree.value === 'string' && isTemplate(tree.value) ? [tree.value] : []
  if (tree.kind === 'list') return tree.items.flatMap(templatesIn)
  return [...tree.entries.values()].flatMap(entry => templatesIn(entry.value))
}

/** Of a recipe, but not those of the values it brings itself: they only count where they are used. */
const templatesOf = (recipe: MapTree): string[] =>
  [...recipe.entries].flatMap(([key, entry]) => (key === 'vars' ? [] : templatesIn(entry.value)))

function templatesBehind(value: Value | undefined): string[] {
  if (value === undefined) return []
  if (value.kind === 'branch') return [...value.entries.values()].flatMap(templatesBehind)
  return [...templatesIn(value.tree), ...templatesBehind(value.appendsTo)]
}

/** What these templates use, and what that is made of: vars.image, vars.suite. */
function usedBy(templates: readonly string[], merged: Branch): Set<string> {
  const used = new Set<string>()
  const open = [...templates]
  for (const template of open)
    for (const path of referencedPaths(template).map(one => one.slice(0, 2))) {
      if (used.has(path.join('.'))) continue
      used.add(path.join('.'))
      if (path.length === 2) open.push(...templatesBehind(valueAt(merged, path)))
    }
  return used
}

type Complain = (place: Place, path: string, message: string, missing?: readonly string[]) => void

function renderMap(tree: MapTree, context: Plain, complain: Complain): MapTree {
  const renderer = createRenderer()
  const render = (node: Tree, path: string): Tree => {
    if (node.kind === 'map') return renderEntries(node, path)
    if (node.kind === 'list')
      return { ...node, items: node.items.flatMap((item, at) => renderItem(item, `${path}.${at}`)) }
    if (typeof node.value !== 'string' || !isTemplate(node.value)) return node
    try {
      return treeOf(renderer.render(node.value, context), node)
    } catch (error) {
      if (!(error instanceof MusterError)) throw error
      const missing = undefinedIn(error, node.value, context)
      complain(node, path, missing?.message ?? error.message, missing?.path)
      return node
    }
  }
  /** A template in a list that gives a list adds its items. */
  const renderItem = (item: Tree, path: string): readonly Tree[] => {
    const rendered = render(item, path)
    return item.kind === 'scalar' && rendered.kind === 'list' ? rendered.items : [rendered]
  }
  const renderEntries = (map: MapTree, path: string): MapTree => ({
    ...map,
    entries: new Map(
      [...map.entries].map(([key, entry]) => {
        const value =
          path === '' && key === 'vars' ? entry.value : render(entry.value, path === '' ? key : `${path}.${key}`)
        return [key, { ...entry, value }]
      }),
    ),
  })
  return renderEntries(tree, '')
}

/** vars.suiet is not defined — did you mean suite? Nothing when that is not what went wrong. */
export function undefinedIn(
  error: MusterError,
  template: string,
  context: Plain,
): { readonly path: readonly string[]; readonly message: string } | undefined {
  const path = error.message.startsWith('undefined value') ? undefinedPath(template, context) : undefined
  if (path === undefined) return undefined
  const beside = Object.keys(valueIn(context, path.slice(0, -1)) ?? {})
  return { path, message: `${path.join('.')} is not defined${didYouMean(path.at(-1) ?? '', beside)}` }
}

/** A plain value as a tree, all of it standing where its template stands. */
function treeOf(value: unknown, at: Place): Tree {
  const place = { line: at.line, column: at.column }
  if (Array.isArray(value))
    return { kind: 'list', items: value.map(item => treeOf(item, at)), ...place } satisfies ListTree
  if (typeof value === 'object' && value !== null)
    return {
      kind: 'map',
      entries: new Map(Object.entries(value).map(([key, item]) => [key, { value: treeOf(item, at), ...place }])),
      ...place,
    }
  return { kind: 'scalar', value: value as string | number | boolean | null, ...place }
}
