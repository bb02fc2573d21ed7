import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { exec } from '../../src/lib/exec.ts'
import { commitAll, MUSTER } from '../world.ts'

/** A site with one image, in a git repository. Files are those beside the recipe. */
export async function writeImageSite(
  dir: string,
  image: string,
  recipe: string,
  files: Readonly<Record<string, string>> = {},
): Promise<void> {
  const contents = { 'site.yaml': 'site: bench\n', [`images/${image}/image.yaml`]: recipe }
  const beside = Object.entries(files).map(([name, content]) => [`images/${image}/${name}`, content] as const)
  for (const [name, content] of [...Object.entries(contents), ...beside]) {
    await mkdir(dirname(join(dir, name)), { recursive: true })
    await writeFile(join(dir, name), content)
  }
  await exec('git', ['-C', dir, 'init', '--quiet', '--initial-branch=main'])
  await commitAll(dir, 'first')
}

export async function buildImage(site: string, data: string, image: string): Promise<void> {
  await exec(MUSTER, ['image', 'build', image, '--site', site, '--data', data], { timeout: 0 })
}
