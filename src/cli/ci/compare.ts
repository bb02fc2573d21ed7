import type { ApiClient } from '../../api/client.ts'
import { RemoteImages } from '../../api/client-images.ts'
import type { ChannelItem } from '../../api/schemas.ts'
import type { BuiltImage } from '../../images/build/build.ts'
import { packagesOf } from '../../images/content.ts'
import { diffPackages } from '../../images/diff.ts'
import { fetchBlob } from '../../images/download.ts'
import { type Digest, type Manifest, artefactOf } from '../../images/manifest.ts'
import type { InstalledPackage } from '../../images/packages/package.ts'
import type { ImageStore } from '../../images/store/store.ts'
import { MusterError } from '../../lib/errors.ts'
import { MAIN_CHANNEL } from './branch.ts'
import type { CiImage } from './summary.ts'

/** What a build changes: against what the main channel of the server points to, else against the image that was here before. */
export async function describeChange(
  built: BuiltImage,
  store: ImageStore,
  client: ApiClient | undefined,
  signal: AbortSignal,
): Promise<Partial<CiImage>> {
  const { digest, isUnchanged, manifest, previous } = built
  const before =
    (client && (await promoted(built.name, store, client, signal))) ??
    (previous && (await store.manifest(previous).catch(() => undefined)))
  const common = { digest, isUnchanged, size: { after: manifest.size, ...(before && { before: before.size }) } }
  if (before === undefined) return common
  const changes = diffPackages(await packagesOf(store, before), await packagesOf(store, manifest))
  return {
    ...common,
    packages: {
      added: changes.added.map(exactly),
      removed: changes.removed.map(exactly),
      changed: [...changes.upgraded, ...changes.downgraded].map(
        ({ before: old, after }) => `${after.name} ${old.version} → ${after.version}`,
      ),
    },
  }
}

/** Its manifest, with its list of packages brought here; undefined where nothing was promoted yet. */
async function promoted(
  name: string,
  store: ImageStore,
  client: ApiClient,
  signal: AbortSignal,
): Promise<Manifest | undefined> {
  const images = new RemoteImages(client)
  try {
    const { digest } = await client.get<ChannelItem>(`/api/v1/channels/${name}/${MAIN_CHANNEL}`)
    const manifest = await images.manifest({ name, digest: digest as Digest })
    const packages = artefactOf(manifest, 'packages')
    if (packages !== undefined && !(await store.has(packages.sha256)))
      await fetchBlob(images, store, packages, () => {}, signal)
    return manifest
  } catch (error) {
    if (error instanceof MusterError && error.status === 404) return undefined
    throw error
  }
}

const exactly = ({ name, version }: InstalledPackage): string => `${name} ${version}`
