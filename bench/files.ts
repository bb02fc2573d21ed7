import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Batch, ListMaker } from '../src/files/maker.ts'
import type { SiteNode } from '../src/site/members.ts'
import { openSite } from '../src/site/site.ts'
import { directorySource } from '../src/site/source.ts'
import { benchNode } from './boot/world.ts'
import { type Bench, against, seconds } from './figure.ts'
import { requestFigures } from './file-requests.ts'
import { temporaryDir } from './world.ts'

const NODES = 20_000
const LIMIT = 10
const LIMIT_CHANGE = 0.5
const GROUP = 2000
const RUNS = 3
/** Of its own for every node, the same in a rack, the same for all: hosts has a line for every node. */
const [OWN, SHARED] = [5, 8]
/** From the changed file on disk to the lists of all nodes that have it. */
const CHANGES = [
  { name: "a group's file changes", path: 'files/group.j2', nodes: GROUP },
  { name: 'a group says the same in other words', path: 'groups/g.yaml', nodes: 0 },
  { name: "everybody's file changes", path: 'files/shared0.j2', nodes: NODES },
] as const

/** The files of all nodes, from the values of the site to lists and digests of what would be written; then one of a group's changes. */
export const filesBench: Bench = async function* () {
  await using dir = await temporaryDir()
  const write = (files: Record<string, string>): Promise<void> => writeAll(dir.path, files)
  await write(siteFiles())
  const source = await directorySource(dir.path)
  let site = await openSite(source)
  // Desired state is worked out before, whether nodes have files or not.
  for (const node of site.nodes.values()) site.resolve(node)
  let maker = new ListMaker(() => Promise.resolve(''))
  const cold = await seconds(RUNS, async () => {
    maker = new ListMaker(() => Promise.resolve(''))
    await drain(maker.update(site, source))
  })
  const count = site.filesOf(site.nodes.values().next().value as SiteNode).entries.length
  yield {
    bench: 'files',
    case: `render ${count} files for each of ${NODES} nodes`,
    value: cold,
    unit: 's',
    ...against(LIMIT, cold),
  }

  for (const { name, path, nodes } of CHANGES) {
    let version = 0
    let told = 0
    const value = await seconds(RUNS, async () => {
      await write({ [path]: `${siteFiles()[path] ?? ''}# ${version++}\n` })
      site = await openSite(source, site)
      told = await drain(maker.update(site, source))
    })
    if (told !== nodes) throw new Error(`${told} nodes were to change, not ${nodes}`)
    yield {
      bench: 'files',
      case: `${name}: ${told} nodes of ${NODES}`,
      value,
      unit: 's',
      ...(nodes < NODES && against(LIMIT_CHANGE, value)),
    }
  }
  yield* requestFigures({
    nodes: NODES,
    write: to => writeAll(to, siteFiles()),
    nodeOf: number => ({ ...benchNode(number), name: `n${number}` }),
    everybodys: 'files/shared0.j2',
  })
}

async function writeAll(dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), text)
  }
}

/** How many nodes changed. */
async function drain(batches: AsyncGenerator<Batch, unknown>): Promise<number> {
  let nodes = 0
  for await (const batch of batches) nodes += batch.nodes.length
  return nodes
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
  const group = ['group.j2', '# {{ cluster }} {{ vars.rack }}\n']
  const sources = [...own, ...shared, ['hosts.j2', hosts], group] as [string, string][]
  const files = sources
    .filter(([name]) => name !== 'group.j2')
    .map(([name]) => `/etc/${name.replace('.j2', '')}: ${name}`)
    .join(', ')
  return {
    'site.yaml':
      'site: bench\nnetworks: { prov: { cidr: 10.64.0.0/12, gateway: 10.64.0.1 } }\ndefaults: { boot: { image: base } }\n',
    'images/base/image.yaml': 'from: { debian: bookworm }\n',
    'groups/g.yaml': 'files: { /etc/group.conf: group.j2 }\n',
    'nodes.yaml': `n[1-${GROUP}]: { groups: [g] }
n[1-${NODES}]:
  files: { ${files} }
  vars: { rack: "{{ index // 64 }}" }
  interfaces:
    prov:
      address: "{{ '10.64.0.0' | ip_add(index + 256) }}"
      mac: "52:54:00:{{ '%02x' | format(index // 65536) }}:{{ '%02x' | format(index // 256 % 256) }}:{{ '%02x' | format(index % 256) }}"
`,
    ...Object.fromEntries(sources.map(([name, text]) => [`files/${name}`, text])),
  }
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index)
