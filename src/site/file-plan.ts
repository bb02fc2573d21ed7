import { createHash } from 'node:crypto'
import { didYouMean } from '../lib/suggest.ts'
import { FILE_KINDS, type FileKey } from './file-kinds.ts'
import type { Plain } from './paths.ts'
import { type ReadyName, readyFile } from './ready-files.ts'
import { isPlainPath } from './values.ts'

/**
 * What is to be where on a node, in order of path and before anything is rendered: a folder has become its files.
 *
 *     files: { /etc/ssh: { source: ssh, mode: "0600" } }   with files/ssh/sshd_config.j2 and files/ssh/keys/ca.pub
 *     → /etc/ssh/keys/ca.pub from files/ssh/keys/ca.pub, /etc/ssh/sshd_config from the template files/ssh/sshd_config.j2
 */
export interface FilePlan {
  readonly entries: readonly PlannedFile[]
  readonly problems: readonly PlanProblem[]
}

export type When = 'boot' | 'live'

interface Planned {
  readonly path: string
  readonly when: When
  /** What follows a change on a running node: `then` of the site. */
  readonly run?: string
}
interface Owned {
  readonly owner: string
  readonly group: string
  readonly mode: string
}

export interface PlannedContent extends Planned, Owned {
  readonly kind: 'file'
  /** In the site: files/motd.j2; or of ours: ready/hosts. */
  readonly source: string
  /** Identity of what is in the source. */
  readonly blob: string
  /** A file that comes with us. */
  readonly ready?: ReadyName
  readonly interface?: string
}
export interface PlannedFolder extends Planned, Owned {
  readonly kind: 'dir'
  readonly source: string
}
export interface PlannedLink extends Planned {
  readonly kind: 'link'
  readonly target: string
}
export interface PlannedAbsence extends Planned {
  readonly kind: 'absent'
}
export type PlannedFile = PlannedContent | PlannedFolder | PlannedLink | PlannedAbsence

/** What cannot be, and where it was said: the path on the node, and the key below it if it is about one. */
export interface PlanProblem {
  readonly path: readonly [target: string, ...key: string[]]
  readonly message: string
}

/** Path below files/ → identity of its content. */
type Blobs = ReadonlyMap<string, string>

interface FileSettings {
  readonly source?: string
  readonly ready?: ReadyName
  readonly interface?: string
  readonly link?: string
  readonly absent?: boolean
  readonly owner?: string
  readonly group?: string
  readonly mode?: string
  readonly dirMode?: string
  readonly when?: When
  readonly then?: string
  readonly blob?: string
}

/** Remembers by identity: nodes with the same layers have the very same files, and share what is worked out of them. */
export class FilePlans {
  readonly #withBlobs = new WeakMap<Plain, { readonly blobs: Blobs; readonly files: Plain }>()
  readonly #plans = new WeakMap<Plain, FilePlan>()
  readonly #entries = new Map<string, WeakRef<PlannedFile>>()
  readonly #folders = new WeakMap<Blobs, ReadonlyMap<string, readonly string[]>>()

  /**
   * Adds to every file the identity of its source, so that a change of content is a change of the node. The same object as
   * long as nothing of it changed, whatever else of the site did.
   */
  withBlobs(files: Plain, blobs: Blobs): Plain {
    const known = this.#withBlobs.get(files)
    if (known?.blobs === blobs) return known.files
    const entries = Object.entries(files as Readonly<Record<string, string | FileSettings>>).map(([target, file]) => {
      const settings = typeof file === 'string' ? { source: file } : file
      const blob = settings.source === undefined ? undefined : this.#blobOf(settings.source, blobs)
      return [target, blob === undefined ? settings : { ...settings, blob }] as const
    })
    const fresh = Object.fromEntries(entries)
    const wanted = known !== undefined && sameBlobs(known.files, fresh) ? known.files : fresh
    this.#withBlobs.set(files, { blobs, files: wanted })
    return wanted
  }

  /** Of what withBlobs gave. */
  planOf(files: Plain | undefined, blobs: Blobs): FilePlan {
    if (files === undefined) return NOTHING
    let plan = this.#plans.get(files)
    if (plan === undefined) this.#plans.set(files, (plan = this.#plan(files, blobs)))
    return plan
  }

  #plan(files: Plain, blobs: Blobs): FilePlan {
    const problems: PlanProblem[] = []
    const byPath = new Map<string, { readonly entry: PlannedFile; readonly from: string }>()
    // The shortest first: what is said of a path itself goes before what a folder brings there.
    const targets = Object.entries(files as Readonly<Record<string, FileSettings>>).sort(([a], [b]) =>
      a.length === b.length ? compare(a, b) : a.length - b.length,
    )
    for (const [target, settings] of targets) {
      const report = (message: string, key?: string): void =>
        void problems.push({ path: key === undefined ? [target] : [target, key], message })
      for (const entry of this.#entriesOf(target, settings, blobs, report))
        byPath.set(entry.path, { entry, from: target })
    }
    const sorted = [...byPath.values()].sort((a, b) => compare(a.entry.path, b.entry.path))
    for (const { entry, from } of sorted) {
      const above = ancestorsOf(entry.path)
        .map(path => byPath.get(path)?.entry)
        .find(found => found !== undefined && found.kind !== 'dir')
      if (above !== undefined)
        problems.push({
          path: [from],
          message: `${entry.path} cannot be below ${above.path}, which is ${WHAT[above.kind]}`,
        })
    }
    return { entries: sorted.map(({ entry }) => this.#shared(entry)), problems }
  }

  /** The same entry is the same object, in this plan and in the next. */
  #shared(entry: PlannedFile): PlannedFile {
    const key = JSON.stringify(entry)
    const known = this.#entries.get(key)?.deref()
    if (known !== undefined) return known
    if (this.#entries.size > MANY)
      for (const [old, reference] of this.#entries) if (reference.deref() === undefined) this.#entries.delete(old)
    this.#entries.set(key, new WeakRef(entry))
    return entry
  }

  #entriesOf(
    target: string,
    settings: FileSettings,
    blobs: Blobs,
    report: (message: string, key?: string) => void,
  ): PlannedFile[] {
    const { when = 'boot', then: run, owner = 'root', group = 'root', dirMode, ready } = settings
    const mode = settings.mode ?? (ready && readyFile(ready).mode) ?? '0644'
    const kind = kindOf(settings, report)
    if (kind === undefined) return []
    if (run !== undefined && when !== 'live') report('follows a change on a running node: it needs when: live', 'then')
    const about = { when, ...(run !== undefined && { run }) }
    if (kind === 'link') return [{ kind, path: target, ...about, target: settings.link ?? '' }]
    if (kind === 'absent') return [{ kind, path: target, ...about }]
    if (ready !== undefined) {
      reportInterface(ready, settings, report)
      const of = settings.interface === undefined ? {} : { interface: settings.interface }
      return [
        { kind: 'file', path: target, ...about, owner, group, mode, source: `ready/${ready}`, blob: '', ready, ...of },
      ]
    }
    if (settings.interface !== undefined) report('is for ready-made files', 'interface')
    const source = withoutSlash(settings.source ?? '')
    const owned = { owner, group }
    const blob = blobs.get(source)
    if (blob !== undefined) {
      if (dirMode !== undefined) report(`is for folders, and files/${source} is a file`, 'dirMode')
      return [{ kind: 'file', path: target, ...about, ...owned, mode, source: `files/${source}`, blob }]
    }
    const inside = this.#foldersOf(blobs).get(source)
    if (inside === undefined) {
      report(`there is no files/${source}${didYouMean(source, [...blobs.keys(), ...this.#foldersOf(blobs).keys()])}`)
      return []
    }
    const files = inside.map((path): PlannedFile => {
      const below = path.slice(source.length + 1).replace(/(?<=[^/])\.j2$/, '')
      return {
        kind: 'file',
        path: `${target}/${below}`,
        ...about,
        ...owned,
        mode,
        source: `files/${path}`,
        blob: blobs.get(path) ?? '',
      }
    })
    reportDoubles(files, report)
    if (dirMode === undefined) return files
    const folders = [
      target,
      ...files.flatMap(({ path }) => ancestorsOf(path).filter(folder => folder.startsWith(`${target}/`))),
    ]
    return [
      ...[...new Set(folders)].map((path): PlannedFile => ({
        kind: 'dir',
        path,
        ...about,
        ...owned,
        mode: dirMode,
        source: `files/${source}`,
      })),
      ...files,
    ]
  }

  /** Of a folder, of everything in it. */
  #blobOf(source: string, blobs: Blobs): string | undefined {
    const path = withoutSlash(source)
    const blob = blobs.get(path)
    if (blob !== undefined) return blob
    const inside = this.#foldersOf(blobs).get(path)
    if (inside === undefined) return undefined
    const hash = createHash('sha1')
    for (const file of inside) hash.update(`${file}\0${blobs.get(file)}\0`)
    return hash.digest('hex')
  }

  /** Every folder below files/ with all the files in it. */
  #foldersOf(blobs: Blobs): ReadonlyMap<string, readonly string[]> {
    let folders = this.#folders.get(blobs)
    if (folders === undefined) {
      const found = new Map<string, string[]>()
      for (const path of [...blobs.keys()].sort(compare))
        for (const folder of ancestorsOf(path)) {
          const inside = found.get(folder)
          if (inside === undefined) found.set(folder, [path])
          else inside.push(path)
        }
      this.#folders.set(blobs, (folders = found))
    }
    return folders
  }
}

const NOTHING: FilePlan = { entries: [], problems: [] }
const MANY = 10_000
const WHAT = { file: 'a file', link: 'a link', absent: 'to be absent', dir: 'a folder' } as const
export const NOTHING_SAID = 'says neither source nor ready nor link nor absent: true'
const OF_CONTENT = ['owner', 'group', 'mode', 'dirMode', 'interface'] as const

/** Exactly one way, and nothing that does not go with it. */
function kindOf(settings: FileSettings, report: (message: string, key?: string) => void): FileKey | undefined {
  const keys = Object.keys(settings)
  const said = keys.filter(
    (key): key is FileKey => FILE_KINDS.some(kind => kind === key) && !(key === 'absent' && settings.absent === false),
  )
  const [kind, ...more] = said
  if (kind === undefined) report(NOTHING_SAID)
  else if (more.length > 0) report(`does not go with ${said.slice(0, -1).join(' and ')}`, said.at(-1))
  else if (kind === 'link' || kind === 'absent')
    for (const key of OF_CONTENT.filter(one => settings[one] !== undefined))
      report(kind === 'link' ? 'says nothing about a link' : 'says nothing about what is absent', key)
  return more.length > 0 ? undefined : kind
}

function reportInterface(
  ready: ReadyName,
  { interface: name, dirMode }: FileSettings,
  report: (message: string, key?: string) => void,
): void {
  const isOfOne = readyFile(ready).isOfInterface === true
  if (isOfOne && name === undefined) report(`interface is missing: ready ${ready} is about one of them`)
  if (!isOfOne && name !== undefined) report(`is not for ready ${ready}`, 'interface')
  if (dirMode !== undefined) report(`is for folders, and ready ${ready} is a file`, 'dirMode')
}

function reportDoubles(files: readonly PlannedFile[], report: (message: string) => void): void {
  const seen = new Map<string, PlannedFile>()
  for (const file of files) {
    const other = seen.get(file.path)
    if (other?.kind === 'file' && file.kind === 'file')
      report(`${other.source} and ${file.source} both become ${file.path}`)
    if (!isPlainPath(file.path)) report(`${JSON.stringify(file.path)} is no path for a file on nodes`)
    seen.set(file.path, file)
  }
}

/** /etc/a/b → /etc, /etc/a */
const ancestorsOf = (path: string): string[] => [...path.matchAll(/(?<=.)\//g)].map(({ index }) => path.slice(0, index))

const withoutSlash = (source: string): string => source.replace(/\/+$/, '')

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const sameBlobs = (before: Plain, after: Plain): boolean =>
  Object.keys(after).every(target => (before[target] as FileSettings).blob === (after[target] as FileSettings).blob)
