import { messageOf } from '../lib/errors.ts'
import { type Renderer, undefinedPath } from '../lib/template.ts'
import type { MapTree, Place, ScalarTree } from '../lib/yaml/tree.ts'
import { type NodeFileEntry, type SiteFile, groupList } from './files.ts'
import type { Problem } from './problems.ts'
import { type Switch, portNumbers } from './switches.ts'
import { treeAt } from './validate.ts'

/** Nodes that stand in no list: one at each port that `switches.NAME.nodes` of site.yaml speaks of. */
export interface SwitchNodes {
  /** As if nodes.yaml had them, below all that it really says. */
  readonly entries: readonly NodeFileEntry[]
  readonly problems: readonly Problem[]
}

/**
 * Everything else sees nodes like any others, with a location that was written in site.yaml.
 *
 *     sw1: { rack: 1, nodes: { ports: 1-2, name: "n{{ rack }}{{ '%02d' | format(port) }}" } }
 *     → n101: { location: { switch: sw1, port: "1", rack: "1" } }, n102: …
 */
export function switchNodes(
  main: SiteFile | undefined,
  switches: ReadonlyMap<string, Switch>,
  renderer: Renderer,
): SwitchNodes {
  const entries: NodeFileEntry[] = []
  const problems: Problem[] = []
  const named = new Map<string, string>()
  for (const [name, { rack, nodes }] of switches) {
    const tree = treeAt(main?.tree, ['switches', name, 'nodes'])
    if (main === undefined || nodes === undefined || tree?.kind !== 'map') continue
    const path = ['switches', name, 'nodes']
    const report = (key: string, message: string): void => {
      const { line, column } = treeAt(tree, [key]) ?? tree
      problems.push({ file: main.path, line, column, path: [...path, key].join('.'), message })
    }
    const render = (key: 'name' | 'port', text: string, port: number): string | undefined => {
      const context = { switch: name, port, ...(rack !== undefined && { rack: numberIn(rack) }) }
      try {
        return String(renderer.render(text, context))
      } catch (error) {
        const missing = undefinedPath(text, context)?.join('.')
        report(key, missing === undefined ? messageOf(error) : `${missing} is not defined: ${NAMES}`)
        return undefined
      }
    }
    for (const port of portNumbers(nodes.ports) ?? []) {
      const node = render('name', nodes.name, port)
      const label = nodes.port === undefined ? String(port) : render('port', nodes.port, port)
      // What is wrong with the template is so at every port.
      if (node === undefined || label === undefined) break
      const other = named.get(node)
      if (other !== undefined) {
        report('name', `${name} port ${port} is called ${node}, as ${other} is`)
        break
      }
      named.set(node, `${name} port ${port}`)
      entries.push(entryOf(main.path, tree, { node, path: path.join('.'), switch: name, port: label, rack }))
    }
  }
  return { entries, problems }
}

const NAMES = 'there are port, switch and, where the switch has one, rack'

/** So that `n{{ rack * 100 + port }}` works; a rack may as well be called r07. */
const numberIn = (text: string): string | number => (/^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : text)

interface Made {
  readonly node: string
  readonly path: string
  readonly switch: string
  readonly port: string
  readonly rack: string | undefined
}

function entryOf(file: string, tree: MapTree, made: Made): NodeFileEntry {
  const at: Place = { line: tree.line, column: tree.column }
  const scalar = (value: string): ScalarTree => ({ kind: 'scalar', value, ...at })
  const mapOf = (entries: readonly (readonly [string, MapTree | ScalarTree])[]): MapTree => ({
    kind: 'map',
    entries: new Map(entries.map(([key, value]) => [key, { value, ...at }])),
    ...at,
  })
  const location = mapOf([
    ['switch', scalar(made.switch)],
    ['port', scalar(made.port)],
    ...(made.rack === undefined ? [] : [['rack', scalar(made.rack)] as const]),
  ])
  return {
    ...at,
    key: made.path,
    names: [made.node],
    layer: { name: `switch ${made.switch}`, file, tree: mapOf([['location', location]]) },
    groups: groupList(tree),
  }
}
