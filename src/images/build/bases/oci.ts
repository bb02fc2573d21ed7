import { mkdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { MusterError } from '../../../lib/errors.ts'
import { type ExecResult, exec } from '../../../lib/exec.ts'
import { Digest } from '../../manifest.ts'
import { hashFile } from '../../store/disk.ts'
import { digestOfFiles } from '../inputs.ts'
import { type SandboxOptions, withTool } from '../sandbox.ts'
import { type BaseFacts, type PinnedBase, damaged, existing } from './base.ts'
import { checkTar } from './tar.ts'

/**
 * A container image: copied whole by skopeo, which checks every digest, unpacked by umoci. Neither is trusted with what a
 * hostile archive can do to them: the lists of the archive and of every layer are read first.
 */
export async function ociBase(facts: BaseFacts, reference: string): Promise<PinnedBase> {
  const isRemote = reference.startsWith('docker://')
  const source = isRemote ? { reference, tag: '', readable: {} } : await localReference(facts, reference)
  const file = Object.values(source.readable)[0] ?? ''
  const content = isRemote ? undefined : `${await localDigest(file)}${source.tag}`
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
        if (reference.includes('-archive:')) await checkTar(file, reference, sandbox)
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
            throw isRemote ? unreachable(error, reference) : damaged(error, reference, 'container image')
          },
        )
        for (const layer of await layersIn(layout)) await checkTar(layer, reference, sandbox, { mayJustEnd: true })
        await withTool(
          upper,
          ['umoci', '--log=error', 'raw', 'unpack', '--image', '/run/layout:image', '/target/root'],
          {
            ...sandbox,
            readable: { '/run/layout': layout },
          },
        ).catch((error: unknown) => {
          throw damaged(error, reference, 'container image')
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
): Promise<{ reference: string; tag: string; readable: Record<string, string> }> {
  const [, transport = '', path = '', tag = ''] =
    /^(oci|oci-archive|docker-archive):([^:]+)(:.*)?$/.exec(reference) ?? []
  const full = await existing(facts, path, transport === 'oci' ? 'directory' : 'archive')
  return { reference: `${transport}:/run/source${tag}`, tag, readable: { '/run/source': full } }
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
