import { MusterError } from '../../../lib/errors.ts'
import { artefactOf } from '../../manifest.ts'
import type { ImageStore } from '../../store/store.ts'
import { type SandboxOptions, withTool } from '../sandbox.ts'
import { type PinnedBase, damaged } from './base.ts'

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
      make: async ({ upper, sandbox }) => {
        const { squashfs } = pin as { squashfs: string }
        if (!(await store.has(squashfs)))
          throw new MusterError(
            'IMAGE_UNKNOWN',
            `the image ${name} that ${from.file.replace('image.yaml', 'lock.json')} names is no longer here`,
            {
              hint: 'bring it back with pull or import, or take the newest with --update',
            },
          )
        await unpackSquashfs(store.pathOf(squashfs), upper, sandbox, `image ${name}`)
      },
    }),
  }
}

export async function unpackSquashfs(
  file: string,
  target: string,
  sandbox: SandboxOptions,
  shown = file,
): Promise<void> {
  await withTool(
    target,
    ['unsquashfs', '-quiet', '-no-progress', '-force', '-dest', '/target', '/run/image.squashfs'],
    {
      ...sandbox,
      readable: { '/run/image.squashfs': file },
    },
  ).catch((error: unknown) => {
    throw damaged(error, shown, 'squashfs')
  })
}
