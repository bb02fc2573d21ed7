import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Figure, against, seconds } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { buildImage, writeImageSite } from './build.ts'
import type { BenchTree } from './trees.ts'

/** Building again what was built before: unchanged, and with another file at the end. The whole process each. */
export async function* rebuildFigures(tree: BenchTree): AsyncGenerator<Figure> {
  await using dir = await temporaryDir()
  const [site, data] = [join(dir.path, 'site'), join(dir.path, 'data')]
  const recipe = `from: { directory: ${JSON.stringify(tree.path)} }\nfiles: { /etc/bench: bench }\n`
  await writeImageSite(site, 'large', recipe, { bench: 'first\n' })
  await buildImage(site, data, 'large')

  const unchanged = await seconds(5, () => buildImage(site, data, 'large'))
  yield {
    bench: 'images',
    case: `build again, nothing changed, ${tree.about}`,
    value: unchanged,
    unit: 's',
    ...against(1, unchanged),
  }
  let change = 0
  const changed = await seconds(5, async () => {
    await writeFile(join(site, 'images/large/bench'), `change ${++change}\n`)
    await buildImage(site, data, 'large')
  })
  yield {
    bench: 'images',
    case: `build again, the last file changed, ${tree.about}`,
    value: changed,
    unit: 's',
    ...against(5, changed),
  }
}
