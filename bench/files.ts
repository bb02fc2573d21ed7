import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { FileRenderer } from '../src/site/render-files.ts'
import { openSite } from '../src/site/site.ts'
import { directorySource } from '../src/site/source.ts'
import { type Bench, against, seconds } from './figure.ts'
import { temporaryDir } from './world.ts'

const NODES = 20_000
const LIMIT = 10
const RUNS = 3
/** Of its own for every node, the same in a rack, the same for all: hosts has a line for every node. */
const [OWN, SHARED] = [5, 9]

/** Rendering the files of all nodes, from the values of the site to digests of what would be written. */
export const filesBench: Bench = async function* () {
  await using dir = await temporaryDir()
  for (const [path, text] of Object.entries(siteFiles())) {
    await mkdir(dirname(join(dir.path, path)), { recursive: true })
    await writeFile(join(dir.path, path), text)
  }
  const source = await directorySource(dir.path)
  const site = await openSite(source)
  // Desired state is worked out before, whether nodes have files or not.
  for (const node of site.nodes.values()) site.resolve(node)
  let count = 0
  const value = await seconds(RUNS, async () => {
    const renderer = new FileRenderer(site, source, () => Promise.resolve(''))
    count = 0
    for (const node of site.nodes.values()) count += (await renderer.render(node)).length
  })
  const name = `render ${count / NODES} files for each of ${NODES} nodes`
  yield { bench: 'files', case: name, value, unit: 's', ...against(LIMIT, value) }
}

function siteFiles(): Record<string, string> {
  const own = range(OWN).map(number => [
    `own${number}.j2`,
    `# ${number}\nname={{ name }}\naddress={{ interfaces.prov.address }}\nrack={{ vars.rack }}\n`,
  ])
  const shared = range(SHARED).map(number => [
    `shared${number}.j2`,
    `# ${number}\ncluster={{ cluster }}\ngateway={{ networks.prov.gateway }}\nrack={{ vars.rack }}\n`,
  ])
  const hosts = `{% for n in nodes('n[1-${NODES}]') %}{{ n.interfaces.prov.address }} {{ n.name }}\n{% endfor %}`
  const sources = [...own, ...shared, ['hosts.j2', hosts]] as [string, string][]
  const files = sources.map(([name]) => `/etc/${name.replace('.j2', '')}: ${name}`).join(', ')
  return {
    'site.yaml':
      'site: bench\nnetworks: { prov: { cidr: 10.64.0.0/12, gateway: 10.64.0.1 } }\ndefaults: { boot: { image: base } }\n',
    'images/base/image.yaml': 'from: { debian: bookworm }\n',
    'nodes.yaml': `n[1-${NODES}]:
  files: { ${files} }
  vars: { rack: "{{ index // 64 }}" }
  interfaces: { prov: { address: "{{ '10.64.0.0' | ip_add(index + 256) }}" } }
`,
    ...Object.fromEntries(sources.map(([name, text]) => [`files/${name}`, text])),
  }
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index)
