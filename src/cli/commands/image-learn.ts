import { mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { openWorkDir } from '../../images/build/workdir.ts'
import { requireTools } from '../../images/build/tools.ts'
import { openTree } from '../../images/open-tree.ts'
import type { Facts } from '../../images/tests/learn/facts.ts'
import { type Learnt, learn as choose } from '../../images/tests/learn/learn.ts'
import { TOPICS, type Topic } from '../../images/tests/learn/learnt.ts'
import { factsOfMachine, factsOfSubject } from '../../images/tests/learn/sources.ts'
import { openRoot } from '../../images/tests/places/root.ts'
import { exists } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { NAME } from '../../site/values.ts'
import { patiently } from '../ask.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { type DataOption, imageStore } from '../images.ts'
import type { Io } from '../io.ts'
import { plural } from '../output.ts'

interface LearnFlags extends DataOption {
  readonly from?: string
  readonly to?: string
  readonly kinds?: string
  readonly versions?: boolean
  readonly force?: boolean
  readonly sshConfig?: string
}

const STDOUT = '-'
const MOST_NOTES = 20

export async function learn(call: Call<LearnFlags>): Promise<void> {
  const {
    io,
    out,
    options,
    args: [name = ''],
  } = call
  if (!NAME.test(name)) throw new MusterError('USAGE', `${name} is not the name of an image`)
  const topics = topicsOf(options.kinds)
  const from = sourceOf(io, options.from)
  const file = await fileFor(call, name)
  if (file !== undefined) await mustBeFree(file, from, options)
  const facts = await patiently(io, `looking at ${from.called}`, factsFrom(call, from))
  const learnt = choose(facts, {
    from: from.called,
    ...(topics && { topics }),
    versions: options.versions === true,
  })
  if (Object.keys(learnt.counts).length === 0)
    throw new MusterError('TESTS_MISSING', `nothing was learnt from ${from.called}`, {
      details: learnt.notes.slice(0, MOST_NOTES),
      hint: 'is it the root of a system?',
    })
  for (const note of notesOf(learnt)) out.note(note)
  if (file === undefined) {
    // As two documents, for each says at its top where it runs.
    io.stdout.write([learnt.root, learnt.container].filter(text => text !== undefined).join('---\n'))
    return
  }
  const files = await write(file, learnt, options)
  const next = `muster image test ${name}`
  await out.result({ name, from: from.called, files, learnt: learnt.counts, notes: learnt.notes }, () => [
    ...files.map(path => `${shortest(io, path)} written`),
    `learnt: ${countsText(learnt)}`,
    `next: look at ${files.length === 1 ? 'it' : 'them'}, then ${next}`,
  ])
}

type Source =
  | { readonly kind: 'machine'; readonly called: string; readonly destination: string | undefined }
  | { readonly kind: 'image'; readonly called: string; readonly reference: string }
  | { readonly kind: 'tree'; readonly called: string; readonly path: string }

/** As ssh takes it. What begins with a dash would be an option, and nothing here is for a shell. */
const HOST = /^(?:[\w.][\w.-]*@)?(?:[\w.][\w.-]*|[0-9a-f:.]*:[0-9a-f:.]*)$/i
const ADDRESS = /^ssh:\/\/(?:[\w.][\w.-]*@)?(?:[\w.][\w.-]*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

function sourceOf(io: Io, given: string | undefined): Source {
  if (given === undefined || given === '')
    throw new MusterError('USAGE', 'say where to look: --from DIR, --from image:NAME or --from ssh:HOST')
  if (given.startsWith('ssh:')) {
    const destination = given.startsWith('ssh://') ? given : given.slice('ssh:'.length)
    if (!(given.startsWith('ssh://') ? ADDRESS : HOST).test(destination))
      throw new MusterError('USAGE', `${given} names no machine`, {
        hint: 'write ssh:HOST, ssh:USER@HOST or ssh://USER@HOST:PORT; the rest goes into a file for --ssh-config',
      })
    return { kind: 'machine', called: given, destination }
  }
  if (given.startsWith('image:')) return { kind: 'image', called: given, reference: given.slice('image:'.length) }
  const path = resolve(io.cwd, given)
  if (path === '/') return { kind: 'machine', called: 'this machine', destination: undefined }
  return { kind: 'tree', called: given, path }
}

async function factsFrom({ io, options }: Call<LearnFlags>, source: Source): Promise<Facts> {
  const [from, signal] = [source.called, io.interrupted]
  if (source.kind === 'machine') {
    const config = options.sshConfig === undefined ? {} : { sshConfig: resolve(io.cwd, options.sshConfig) }
    return factsOfMachine(source.destination, { from, signal, ...config })
  }
  await requireTools(source.kind === 'image' ? [['unsquashfs', 'squashfs-tools']] : [])
  if (source.kind === 'tree' && !(await isDirectory(source.path)))
    throw new MusterError('USAGE', `there is no directory ${source.path}`)
  const store = await imageStore(io, options)
  await using work = await openWorkDir(join(store.dir, 'work'))
  if (source.kind === 'tree') return await factsOfTree(source.path, work.path, { from, signal })
  const { manifest } = await store.resolve(source.reference)
  await using tree = await openTree(store, manifest, signal)
  return await factsOfTree(tree.root, work.path, { from, signal })
}

/** Its own programs are asked, in a sandbox. */
async function factsOfTree(
  tree: string,
  work: string,
  { from, signal }: { readonly from: string; readonly signal: AbortSignal },
): Promise<Facts> {
  await using root = await openRoot(tree, { work, signal })
  return await factsOfSubject(root, from)
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    info => info.isDirectory(),
    () => false,
  )

function topicsOf(given: string | undefined): readonly Topic[] | undefined {
  if (given === undefined) return undefined
  const topics = given.split(',')
  const wrong = topics.find(topic => !(TOPICS as readonly string[]).includes(topic))
  if (wrong !== undefined) throw new MusterError('USAGE', `${wrong} is no kind of check to learn: ${TOPICS.join(', ')}`)
  return topics as Topic[]
}

/** Nothing for standard output. */
async function fileFor({ io, options }: Call<LearnFlags>, name: string): Promise<string | undefined> {
  if (options.to === STDOUT) return undefined
  if (options.to !== undefined) return resolve(io.cwd, options.to)
  return join(await siteDir(io, options), 'images', name, 'tests/learned.yaml')
}

/** learned.yaml → learned-running.yaml: a file says at its top where all of it runs. */
const runningFile = (file: string): string => file.replace(/(\.ya?ml)?$/, '-running$1')

/** Before anything is looked at, so that nobody waits in vain. */
async function mustBeFree(file: string, { kind }: Source, { force }: LearnFlags): Promise<void> {
  const files = [file, ...(kind === 'machine' ? [runningFile(file)] : [])]
  for (const path of force === true ? [] : files) if (await exists(path)) throw taken(path)
}

const taken = (path: string): MusterError =>
  new MusterError('FILE_UNWRITABLE', `${path} is there already`, { hint: 'say --force to write it anew' })

async function write(file: string, { root, container }: Learnt, { force }: LearnFlags): Promise<string[]> {
  const texts = new Map<string, string>()
  if (root !== undefined) texts.set(file, root)
  if (container !== undefined) texts.set(runningFile(file), container)
  await mkdir(dirname(file), { recursive: true })
  for (const [path, text] of texts)
    await writeFile(path, text, { flag: force === true ? 'w' : 'wx' }).catch((error: unknown) => {
      throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? taken(path) : error
    })
  return [...texts.keys()]
}

const shortest = (io: Io, path: string): string => {
  const here = relative(io.cwd, path)
  return here.startsWith('..') ? path : here
}

const countsText = ({ counts }: Learnt): string =>
  TOPICS.flatMap(topic => (counts[topic] === undefined ? [] : [plural(counts[topic], WORDS[topic] ?? topic)])).join(
    ', ',
  )

const WORDS: Partial<Record<Topic, string>> = { 'kernel-param': 'kernel parameter' }

const notesOf = ({ notes }: Learnt): string[] =>
  notes.length > MOST_NOTES
    ? [...notes.slice(0, MOST_NOTES), `… and ${plural(notes.length - MOST_NOTES, 'more')}`]
    : [...notes]
