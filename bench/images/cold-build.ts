import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hostSources } from '../../src/images/build/apt.ts'
import { exec } from '../../src/lib/exec.ts'
import { type Figure, round } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { buildImage, writeImageSite } from './build.ts'
import { cpioByHand, squashfsByHand } from './by-hand.ts'
import { inTurns, timed } from './turns.ts'

const SUITE = 'bookworm'
const PACKAGES = ['linux-image-cloud-amd64', 'systemd-sysv', 'openssh-server', 'curl']
const RECIPE = `from: { debian: ${SUITE} }
packages: [${PACKAGES.join(', ')}]
outputs: [squashfs, cpio.zst]
`
const ROUNDS = 3

/** From nothing: no lock, no package at hand. Both sides ask the same mirrors. */
export async function* coldBuildFigures(): AsyncGenerator<Figure> {
  const { ours, byHand } = await inTurns(ROUNDS, { ours: buildFromNothing, byHand: buildByHand })
  yield {
    bench: 'images',
    case: `cold build of Debian ${SUITE} with a kernel and ssh, squashfs and cpio.zst`,
    value: ours,
    unit: 's',
    peer: 'mmdebstrap, then mksquashfs, then cpio | zstd; limit 1.15',
    ratio: round(ours / byHand),
  }
}

async function buildFromNothing(): Promise<number> {
  await using dir = await temporaryDir()
  const [site, data] = [join(dir.path, 'site'), join(dir.path, 'data')]
  await writeImageSite(site, 'base', RECIPE)
  return await timed(() => buildImage(site, data, 'base'))
}

async function buildByHand(): Promise<number> {
  await using dir = await temporaryDir()
  const root = join(dir.path, 'root')
  const sources = (await hostSources(SUITE, ['main'])).map(
    ({ urls, suite, components, key }) => `deb [signed-by=${key}] ${urls[0]} ${suite} ${components.join(' ')}`,
  )
  const include = `--include=${[...PACKAGES, 'apt'].join(',')}`
  const seconds = await timed(async () => {
    await exec('mmdebstrap', ['--variant=minbase', include, SUITE, root, ...sources], { timeout: 0 })
    await squashfsByHand(root, join(dir.path, 'root.squashfs'))
    await cpioByHand(root, join(dir.path, 'root.cpio.zst'))
  })
  // Device nodes too.
  await rm(root, { recursive: true })
  return seconds
}
