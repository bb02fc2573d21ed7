import { type Entry, type FileEntry, type FileTree, compareNames } from '../../lib/tree/entry.ts'
import type { LayerContent } from './scan.ts'

/** A layer and where its files lie. */
export interface StackedLayer extends LayerContent {
  readonly root: string
}

/** A tree made of layers, with what each path resolves to: overlayfs's view, worked out without mounting anything. */
export interface MergedTree extends FileTree {
  get(path: string): Entry | undefined
  /** Follows symbolic links as the running system would, inside the tree: /lib/x → usr/lib/x. The last part need not exist. */
  resolve(path: string): string
}

interface Place {
  entry: Entry
  layer: number
  readonly children: Map<string, Place>
}

/** Lowest layer first. */
export function mergeLayers(layers: readonly StackedLayer[]): MergedTree {
  let top: Place | undefined
  const find = (path: string): Place | undefined => {
    if (path === '') return top
    let place = top
    for (const name of path.split('/')) place = place?.children.get(name)
    return place
  }
  for (const [number, layer] of layers.entries()) {
    for (const path of layer.gone) remove(find, path)
    for (const path of layer.opaque) find(path)?.children.clear()
    for (const entry of layer.entries) {
      const known = find(entry.path)
      if (known !== undefined) {
        if (entry.type !== 'directory' || known.entry.type !== 'directory') known.children.clear()
        known.entry = entry
        known.layer = number
      } else if (entry.path === '') top = { entry, layer: number, children: new Map() }
      else find(parent(entry.path))?.children.set(base(entry.path), { entry, layer: number, children: new Map() })
    }
  }
  const places = new Map<string, Place>()
  const entries: Entry[] = []
  const firstNames = new Map<string, string>()
  const visit = (place: Place): void => {
    place.entry = named(place, firstNames)
    places.set(place.entry.path, place)
    entries.push(place.entry)
    const children = [...place.children].sort(([a], [b]) => compareNames(a, b))
    for (const [, child] of children) visit(child)
  }
  if (top !== undefined) visit(top)

  const get = (path: string): Entry | undefined => places.get(path)?.entry
  return {
    entries,
    get,
    resolve: path => resolveIn(get, path),
    locate: (file: FileEntry) => `${layers[places.get(file.path)?.layer ?? 0]?.root}/${file.path}`,
  }
}

const parent = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
const base = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

function remove(find: (path: string) => Place | undefined, path: string): void {
  find(parent(path))?.children.delete(base(path))
}

/** Names of one file in one layer stay names of one file; the first that is left is the file itself. */
function named({ entry, layer }: Place, firstNames: Map<string, string>): Entry {
  if (entry.type !== 'file') return entry
  const group = `${layer}:${entry.linkTo ?? entry.path}`
  const first = firstNames.get(group)
  if (first === undefined) {
    firstNames.set(group, entry.path)
    if (entry.linkTo === undefined) return entry
    const { linkTo: _, ...file } = entry
    return file
  }
  return { ...entry, linkTo: first }
}

const MAX_LINKS = 40

/** Where a path leads when links are followed inside the tree; nothing outside is ever looked at. */
export function resolveIn(get: (path: string) => Entry | undefined, path: string): string {
  let hops = 0
  const done: string[] = []
  const rest = path.split('/').filter(Boolean)
  while (rest.length > 0) {
    const name = rest.shift() ?? ''
    if (name === '.') continue
    if (name === '..') {
      done.pop()
      continue
    }
    const here = [...done, name].join('/')
    const entry = get(here)
    if (entry?.type !== 'symlink' || ++hops > MAX_LINKS) {
      done.push(name)
      continue
    }
    if (entry.target.startsWith('/')) done.length = 0
    rest.unshift(...entry.target.split('/').filter(Boolean))
  }
  return done.join('/')
}
