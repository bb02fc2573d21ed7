import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { exec } from '../src/lib/exec.ts'
import { readYaml } from '../src/lib/yaml/read.ts'
import { type Bench, against, round, seconds } from './figure.ts'
import { writeBenchSite } from './sites.ts'
import { MUSTER, temporaryDir } from './world.ts'

const SIZES = [1000, 5000, 20_000, 100_000]

/** Checking and explaining sites without a server, process start included, from 1,000 to 100,000 nodes. */
export const siteBench: Bench = async function* () {
  for (const style of ['rules', 'listed'] as const) {
    for (const nodes of SIZES) {
      await using dir = await temporaryDir()
      await writeBenchSite(dir.path, nodes, style)
      const atTarget = nodes === 20_000
      const check = await seconds(3, () => exec(MUSTER, ['site', 'check', dir.path]))
      yield {
        bench: 'site',
        case: `check ${nodes} nodes, ${style}`,
        value: check,
        unit: 's',
        ...(atTarget && against(2, check)),
      }
      const node = `n${'1'.padStart(String(nodes).length, '0')}`
      const explain = await seconds(3, () => exec(MUSTER, ['explain', node, '--site', dir.path]))
      yield {
        bench: 'site',
        case: `explain in ${nodes} nodes, ${style}`,
        value: explain,
        unit: 's',
        ...(atTarget && against(0.3, explain)),
      }
    }
  }
  await using dir = await temporaryDir()
  await writeBenchSite(dir.path, 20_000, 'listed')
  const text = await readFile(join(dir.path, 'nodes.yaml'), 'utf8')
  const own = await seconds(3, async () => readYaml(text))
  const peer = await seconds(1, async () => parseDocument(text))
  yield {
    bench: 'site',
    case: 'read YAML of 20000 listed nodes with places',
    value: own,
    unit: 's',
    peer: 'yaml parseDocument',
    ratio: round(own / peer),
  }
}
