import { MusterError } from '../errors.ts'
import type { Pace } from '../pack/pace.ts'
import { parentOf, type DirectoryEntry, type Entry, type FileTree } from '../tree/entry.ts'
import type { DataLayout } from './data.ts'
import { writeListing, type Child } from './directories.ts'
import { INODE_TYPE } from './format.ts'
import { encodeDirectory, encodeFile, encodeOther, type InodeFields } from './inodes.ts'
import { MetadataWriter, type MetadataPlace } from './metadata.ts'
import { IdTable } from './tables.ts'
import { XattrTable } from './xattrs.ts'

/**
 * The inode table and the directory table, which point at each other: a listing says where the inodes of its names are, the
 * inode of a directory where its listing is. So a directory is written when all that is in it has been.
 */
export interface TreeTables {
  readonly inodes: Buffer
  readonly directories: Buffer
  readonly inodeCount: number
  readonly root: MetadataPlace
  readonly ids: IdTable
  readonly xattrs: XattrTable
}

export async function encodeTree(tree: FileTree, data: DataLayout, level: number, pace: Pace): Promise<TreeTables> {
  const writer = new TreeWriter(tree, data, level)
  for (const entry of tree.entries) {
    writer.add(entry)
    if (pace.due()) await pace.rest()
  }
  return writer.finish()
}

interface OpenDirectory {
  readonly entry: DirectoryEntry
  readonly number: number
  readonly children: Child[]
  subdirectories: number
}

class TreeWriter {
  readonly #data: DataLayout
  readonly #inodes: MetadataWriter
  readonly #directories: MetadataWriter
  readonly #ids = new IdTable()
  readonly #xattrs: XattrTable
  /** How many names a file has, by its first. */
  readonly #names = new Map<string, number>()
  /** Files with several names, by the first. */
  readonly #linked = new Map<string, Child>()
  /** The directory being filled and those it is in, the root first. */
  readonly #open: OpenDirectory[] = []
  readonly #inodeCount: number
  #number = 0

  constructor(tree: FileTree, data: DataLayout, level: number) {
    this.#data = data
    this.#inodes = new MetadataWriter(level)
    this.#directories = new MetadataWriter(level)
    this.#xattrs = new XattrTable(level)
    let links = 0
    for (const entry of tree.entries) {
      if (entry.type !== 'file' || entry.linkTo === undefined) continue
      this.#names.set(entry.linkTo, (this.#names.get(entry.linkTo) ?? 1) + 1)
      links++
    }
    this.#inodeCount = tree.entries.length - links
  }

  add(entry: Entry): void {
    if (entry.path !== '') {
      const parent = parentOf(entry.path)
      while (this.#open.length > 1 && this.#top.entry.path !== parent) this.#close()
      if (this.#top.entry.path !== parent) throw new MusterError('INTERNAL', `${entry.path} is in no directory`)
    }
    if (entry.type === 'directory') {
      this.#open.push({ entry, number: ++this.#number, children: [], subdirectories: 0 })
      return
    }
    const name = nameOf(entry)
    const first = entry.type === 'file' && entry.linkTo !== undefined ? this.#linked.get(entry.linkTo) : undefined
    if (first !== undefined) {
      this.#top.children.push({ ...first, name })
      return
    }
    const child = { name, type: INODE_TYPE[entry.type], inode: ++this.#number, place: this.#inodes.place }
    this.#inodes.append(this.#encode(entry, child.inode))
    this.#top.children.push(child)
    if (this.#names.has(entry.path)) this.#linked.set(entry.path, child)
  }

  finish(): TreeTables {
    while (this.#open.length > 1) this.#close()
    const root = this.#writeDirectory(this.#top, this.#inodeCount + 1)
    return {
      inodes: this.#inodes.finish().bytes,
      directories: this.#directories.finish().bytes,
      inodeCount: this.#inodeCount,
      root,
      ids: this.#ids,
      xattrs: this.#xattrs,
    }
  }

  get #top(): OpenDirectory {
    const top = this.#open.at(-1)
    if (top === undefined) throw new MusterError('INTERNAL', 'the tree has no root directory')
    return top
  }

  #close(): void {
    const directory = this.#top
    this.#open.pop()
    const parent = this.#top
    const place = this.#writeDirectory(directory, parent.number)
    const name = nameOf(directory.entry)
    parent.children.push({ name, type: INODE_TYPE.directory, inode: directory.number, place })
    parent.subdirectories++
  }

  #writeDirectory(directory: OpenDirectory, parent: number): MetadataPlace {
    const listing = writeListing(directory.children, this.#directories)
    const place = this.#inodes.place
    const fields = this.#fields(directory.entry, directory.number)
    this.#inodes.append(encodeDirectory(fields, 2 + directory.subdirectories, parent, listing))
    return place
  }

  #encode(entry: Exclude<Entry, DirectoryEntry>, number: number): Buffer {
    const fields = this.#fields(entry, number)
    if (entry.type !== 'file') return encodeOther(fields)
    return encodeFile({ ...fields, entry }, this.#names.get(entry.path) ?? 1, this.#data.places.get(entry.sha256))
  }

  #fields(entry: Entry, number: number): InodeFields {
    const owner = this.#ids.positionOf(entry.uid)
    const group = this.#ids.positionOf(entry.gid)
    return { entry, number, owner, group, xattrs: this.#xattrs.positionOf(entry) }
  }
}

const nameOf = ({ path }: Entry): Buffer => Buffer.from(path.slice(path.lastIndexOf('/') + 1))
