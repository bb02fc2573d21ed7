import { createReadStream } from 'node:fs'
import { access, constants, lstat, mkdir, readFile, readdir, rm, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { PassThrough, type Readable } from 'node:stream'
import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import { type ExecResult, exec } from '../../lib/exec.ts'
import { checkArchive } from '../../lib/tar/check.ts'
import { readTarHeaders } from '../../lib/tar/read.ts'
import type { ImageStore } from '../store/store.ts'
import { bases } from '../../site/recipe.ts'
import { Digest, artefactOf } from '../manifest.ts'
import { hashFile } from '../store/disk.ts'
import { digestOf, digestOfFiles } from './inputs.ts'
import { type SandboxOptions, withTool } from './sandbox.ts'
import type { Stage } from './stage.ts'

/**
 * Where an image can start besides a distribution's packages. Each is pinned (which bytes exactly; goes into the lock) and
 * then unpacked into an empty directory, by a tool that sees nothing else it could write to.
 */
export interface PinnedBase {
  /** What the recipe asks for, as far as it decides the pin. */
  readonly request: unknown
  /** Finds out which bytes exactly; only asked when the lock does not say. */
  pin(): Promise<unknown>
  stage(pin: unknown): Stage
}

export interface BaseFacts {
  readonly recipeDir: string
  readonly image: string
  readonly arch: string
  readonly sandbox: SandboxOptions
}

const fromRecipe = (facts: BaseFacts, path: string): string =>
  isAbsolute(path) ? path : resolve(facts.recipeDir, path)

async function existing(facts: BaseFacts, path: string, kind: string): Promise<string> {
  const full = fromRecipe(facts, path)
  await access(full).catch((error: unknown) => {
    throw new MusterError('RECIPE_INVALID', `from: there is no ${kind} ${path}`, {
      cause: error,
      hint: 'paths are relative to the folder of the recipe',
    })
  })
  return full
}

/** An archive of a root. Its list is read before anything is unpacked. */
export async function tarBase(facts: BaseFacts, path: string): Promise<PinnedBase> {
  const file = await existing(facts, path, 'archive')
  const { sha256 } = await hashFile(file)
  return {
    request: { tar: sha256 },
    pin: () => Promise.resolve(sha256),
    stage: pin => ({
      title: 'from tar',
      inputs: { tar: pin },
      make: ({ upper, sandbox }) => unpackTar(file, upper, sandbox),
    }),
  }
}

export async function unpackTar(file: string, target: string, sandbox: SandboxOptions): Promise<void> {
  const decompress = await checkTar(file, sandbox)
  const argv = [
    'tar',
    '--extract',
    '--file=/run/archive',
    '--directory=/target',
    '--numeric-owner',
    '--preserve-permissions',
    '--same-owner',
  ]
  const more = [
    '--xattrs',
    '--xattrs-include=security.capability',
    '--xattrs-include=user.*',
    '--no-overwrite-dir',
    '--exclude=./dev/*',
    '--exclude=dev/*',
    '--delay-directory-restore',
  ]
  await withTool(
    target,
    [...argv, ...more, ...(decompress === undefined ? [] : [`--use-compress-program=${decompress}`])],
    {
      ...sandbox,
      readable: { '/run/archive': file },
    },
  )
}

/** Refuses an archive that would touch anything outside the directory it is unpacked into; says what decompresses it. */
async function checkTar(file: string, sandbox: SandboxOptions): Promise<string | undefined> {
  const program = await decompressor(file)
  const stream =
    program === undefined ? createReadStream(file, { highWaterMark: 1 << 20 }) : decompressed(program, file, sandbox)
  await checkArchive(readTarHeaders(stream))
  return program
}

const MAGIC: readonly (readonly [bytes: readonly number[], program: string])[] = [
  [[0x1f, 0x8b], 'gzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'zstd'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'xz'],
  [[0x42, 0x5a, 0x68], 'bzip2'],
]

async function decompressor(file: string): Promise<string | undefined> {
  const stream = createReadStream(file, { end: 7 })
  let head = Buffer.alloc(0)
  for await (const chunk of stream) head = Buffer.concat([head, chunk as Buffer])
  return MAGIC.find(([bytes]) => bytes.every((byte, at) => head[at] === byte))?.[1]
}

async function* decompressed(program: string, file: string, sandbox: SandboxOptions): AsyncGenerator<Uint8Array> {
  const pipe = new PassThrough({ highWaterMark: 1 << 20 })
  const work = exec(program, ['-dc', file], {
    timeout: 0,
    stdoutTo: pipe,
    ...(sandbox.signal && { signal: sandbox.signal }),
  })
  const failed = work.catch((error: unknown) => {
    pipe.destroy(new MusterError('ARCHIVE_INVALID', `${file}: ${program} cannot read it`, { cause: error }))
  })
  yield* pipe as Readable as AsyncIterable<Uint8Array>
  await failed
}

/** A directory that holds a root: known by names, owners, sizes and times. */
export async function directoryBase(facts: BaseFacts, path: string): Promise<PinnedBase> {
  const dir = await existing(facts, path, 'directory')
  const format = '%P\\0%y\\0%m\\0%U\\0%G\\0%s\\0%T@\\0%l\\0\\n'
  const { stdout } = await exec('find', [dir, '-xdev', '-printf', format], { timeout: 0 })
  const lines = stdout
    .toString('latin1')
    .split('\n')
    .map(line => (line.includes('\0d\0') ? line.replace(/\0\d+\0[\d.]+\0/, '\0') : line))
  const pin = digestOf(lines.sort())
  return {
    request: { directory: pin },
    pin: () => Promise.resolve(pin),
    stage: () => ({
      title: 'from directory',
      inputs: { directory: pin },
      async make({ upper, sandbox }) {
        await withTool(
          upper,
          ['cp', '--archive', '--reflink=auto', '--one-file-system', '--no-target-directory', '/run/source', '/target'],
          {
            ...sandbox,
            readable: { '/run/source': dir },
          },
        )
      },
    }),
  }
}

/**
 * A container image: copied whole by skopeo, which checks every digest, unpacked by umoci. Neither is trusted with what a
 * hostile archive can do to them: the lists of the archive and of every layer are read first.
 */
export async function ociBase(facts: BaseFacts, reference: string): Promise<PinnedBase> {
  const isRemote = reference.startsWith('docker://')
  const source = isRemote ? { reference, readable: {} } : await localReference(facts, reference)
  const file = Object.values(source.readable)[0] ?? ''
  const content = isRemote ? undefined : await localDigest(file)
  const skopeo = async (args: readonly string[], options: SandboxOptions): Promise<ExecResult> =>
    withTool(
      undefined,
      ['skopeo', '--insecure-policy', `--override-arch=${facts.arch}`, '--override-os=linux', '--tmpdir=/tmp', ...args],
      { ...options, network: isRemote },
    )
  return {
    request: { oci: isRemote ? reference : content },
    async pin() {
      if (!isRemote) return content
      const { onOutput: _, ...quiet } = facts.sandbox
      const printed = await skopeo(['inspect', '--format', '{{.Digest}}', reference], quiet).catch((error: unknown) => {
        throw unreachable(error, reference)
      })
      return printed.stdout.toString('utf8').trim()
    },
    stage: pin => ({
      title: 'from container image',
      inputs: { oci: pin, arch: facts.arch },
      async make({ upper, scratch, sandbox }) {
        if (reference.includes('-archive:')) await checkTar(file, sandbox)
        const layout = join(scratch, 'layout')
        await mkdir(layout)
        const from = isRemote ? `${reference.replace(/(:[^:/@]+)?(@.*)?$/, '')}@${String(pin)}` : source.reference
        // umoci reads gzip only.
        const copy = [
          'copy',
          '--quiet',
          '--dest-compress',
          '--dest-compress-format',
          'gzip',
          from,
          'oci:/run/layout:image',
        ]
        await skopeo(copy, { ...sandbox, readable: source.readable, writable: { '/run/layout': layout } }).catch(
          (error: unknown) => {
            throw isRemote ? unreachable(error, reference) : damaged(error, reference)
          },
        )
        for (const layer of await layersIn(layout)) await checkTar(layer, sandbox)
        await withTool(
          upper,
          ['umoci', '--log=error', 'raw', 'unpack', '--image', '/run/layout:image', '/target/root'],
          {
            ...sandbox,
            readable: { '/run/layout': layout },
          },
        ).catch((error: unknown) => {
          throw damaged(error, reference)
        })
        await flatten(upper)
      },
    }),
  }
}

const Layout = z.object({ manifests: z.array(z.object({ digest: Digest })).length(1) })
const ImageManifest = z.object({ layers: z.array(z.object({ digest: Digest })) })

async function layersIn(layout: string): Promise<string[]> {
  const blob = (digest: string): string => join(layout, 'blobs', digest.replace(':', '/'))
  const index = Layout.parse(JSON.parse(await readFile(join(layout, 'index.json'), 'utf8')))
  const manifest = ImageManifest.parse(JSON.parse(await readFile(blob(index.manifests[0]?.digest ?? ''), 'utf8')))
  return manifest.layers.map(layer => blob(layer.digest))
}

/** umoci wants a directory that does not exist: what it made moves one level up. */
async function flatten(upper: string): Promise<void> {
  const made = join(upper, 'root')
  const aside = join(dirname(upper), 'unpacked')
  await exec('mv', ['--no-target-directory', made, aside])
  await rm(upper, { recursive: true })
  await exec('mv', ['--no-target-directory', aside, upper])
}

async function localReference(
  facts: BaseFacts,
  reference: string,
): Promise<{ reference: string; readable: Record<string, string> }> {
  const [, transport = '', path = '', tag = ''] =
    /^(oci|oci-archive|docker-archive):([^:]+)(:.*)?$/.exec(reference) ?? []
  const full = await existing(facts, path, transport === 'oci' ? 'directory' : 'archive')
  return { reference: `${transport}:/run/source${tag}`, readable: { '/run/source': full } }
}

const localDigest = async (path: string): Promise<string> =>
  (await stat(path)).isDirectory() ? digestOfFiles(join(path, 'index.json')) : (await hashFile(path)).sha256

const unreachable = (error: unknown, reference: string): unknown =>
  error instanceof MusterError
    ? new MusterError('MIRROR_UNREACHABLE', `cannot read ${reference}`, {
        details: error.details.slice(-5),
        cause: error,
      })
    : error

const damaged = (error: unknown, reference: string): unknown =>
  error instanceof MusterError
    ? new MusterError('ARCHIVE_INVALID', `${reference} is damaged or no container image`, {
        details: error.details.slice(-5),
        cause: error,
      })
    : error

/** An image of the store that has no recipe in this site: imported, or pulled from elsewhere. */
export async function storedBase(store: ImageStore, name: string, from: { file: string }): Promise<PinnedBase> {
  const latest = await store.latest(name)
  if (latest === undefined)
    throw new MusterError(
      'IMAGE_UNKNOWN',
      `${from.file}: there is neither a recipe images/${name}/image.yaml nor an imported image ${name}`,
      {
        hint: 'write the recipe, or bring the image with: muster image import',
      },
    )
  const manifest = await store.manifest(latest.digest)
  const root = artefactOf(manifest, 'squashfs')
  if (root === undefined) throw new MusterError('IMAGE_INCOMPLETE', `image ${name} has no squashfs to build on`)
  return {
    request: { image: name },
    pin: () => Promise.resolve({ image: latest.digest, squashfs: root.sha256 }),
    stage: pin => ({
      title: `from image ${name}`,
      inputs: { squashfs: (pin as { squashfs: string }).squashfs },
      make: ({ upper, sandbox }) =>
        unpackSquashfs(store.pathOf((pin as { squashfs: string }).squashfs), upper, sandbox),
    }),
  }
}

export async function unpackSquashfs(file: string, target: string, sandbox: SandboxOptions): Promise<void> {
  await withTool(
    target,
    ['unsquashfs', '-quiet', '-no-progress', '-force', '-dest', '/target', '/run/image.squashfs'],
    {
      ...sandbox,
      readable: { '/run/image.squashfs': file },
    },
  ).catch((error: unknown) => {
    throw damaged(error, file)
  })
}

/**
 * A base of the site's own: the executable bases/KIND. It gets its settings as JSON on standard input and fills
 * $MUSTER_ROOT; docs/how-to/images.md has the contract.
 */
export async function ownBase(
  facts: BaseFacts,
  sitesBases: string,
  kind: string,
  settings: unknown,
  cache: string,
): Promise<PinnedBase> {
  const program = join(sitesBases, kind)
  const info = await lstat(program).catch(() => undefined)
  if (info === undefined) {
    const known = [...Object.keys(bases), ...(await readdir(sitesBases).catch(() => []))]
    throw new MusterError('RECIPE_INVALID', `from: there is no base ${kind}`, {
      hint: `choose from ${known.join(', ')}, or add an executable bases/${kind}`,
    })
  }
  await access(program, constants.X_OK).catch((error: unknown) => {
    throw new MusterError('RECIPE_INVALID', `bases/${kind} is not executable`, {
      cause: error,
      hint: `chmod +x bases/${kind}`,
    })
  })
  const digest = await digestOfFiles(program)
  await mkdir(cache, { recursive: true })
  const run = async (
    act: 'pin' | 'unpack',
    pin: unknown,
    target: string | undefined,
    sandbox: SandboxOptions,
  ): Promise<ExecResult> =>
    withTool(target, ['/run/muster/base', act], {
      ...sandbox,
      network: true,
      cwd: '/run/muster/recipe',
      input: JSON.stringify({ settings, pin, image: facts.image, arch: facts.arch }),
      env: {
        ...sandbox.env,
        MUSTER_ROOT: '/target',
        MUSTER_CACHE: '/cache',
        MUSTER_IMAGE: facts.image,
        MUSTER_ARCH: facts.arch,
      },
      readable: { '/run/muster/base': program, '/run/muster/recipe': facts.recipeDir },
      writable: { '/cache': cache },
    })
  return {
    request: { kind, settings, program: digest },
    async pin() {
      const { onOutput: _, ...quiet } = facts.sandbox
      const text = (await run('pin', null, undefined, quiet)).stdout.toString('utf8').trim()
      return text === '' ? null : parsedPin(kind, text)
    },
    stage: pin => ({
      title: `from ${kind}`,
      inputs: { kind, settings, program: digest, pin, arch: facts.arch },
      make: async ({ upper, sandbox }) => void (await run('unpack', pin, upper, sandbox)),
    }),
  }
}

function parsedPin(kind: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new MusterError('RECIPE_INVALID', `bases/${kind} pin printed something that is not JSON`, {
      cause: error,
      hint: 'it prints what it will use, as JSON, and nothing else, to standard output',
    })
  }
}
