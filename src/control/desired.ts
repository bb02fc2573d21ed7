import type { Plain } from '../site/paths.ts'
import type { Site } from '../site/site.ts'
import type { Change, Store } from '../state/store.ts'

/**
 * Desired state: what each node should be, as last applied. Held as the JSON text that is stored, which is small, quick
 * to compare and ready to send.
 */
export class DesiredState {
  readonly #nodes: Map<string, Desired>

  private constructor(nodes: Map<string, Desired>) {
    this.#nodes = nodes
  }

  static async load(store: Store): Promise<DesiredState> {
    const entries = await store.list(PREFIX)
    return new DesiredState(
      new Map(entries.map(({ key, value, revision }) => [key.slice(PREFIX.length), new Desired(value, revision)])),
    )
  }

  get(node: string): Desired | undefined {
    return this.#nodes.get(node)
  }

  get nodes(): ReadonlyMap<string, Desired> {
    return this.#nodes
  }

  /** What a site would change. Nodes that resolve to the very value they had are not even looked at. */
  compare(site: Site): DesiredChanges {
    const changes = new Map<string, Plain | null>()
    for (const node of site.nodes.values()) {
      const { value } = site.resolve(node)
      if (this.#nodes.get(node.name)?.equals(value) !== true) changes.set(node.name, value)
    }
    for (const name of this.#nodes.keys()) if (!site.nodes.has(name)) changes.set(name, null)
    return changes
  }

  /** To be told once the changes are stored. */
  accept(changes: DesiredChanges, revision: number): void {
    for (const [name, value] of changes) {
      if (value === null) this.#nodes.delete(name)
      else this.#nodes.set(name, new Desired(JSON.stringify(value), revision, value))
    }
  }
}

/** New values by node; null for nodes that go. */
export type DesiredChanges = ReadonlyMap<string, Plain | null>

const PREFIX = 'desired/'

export const storeChanges = (changes: DesiredChanges): Change[] =>
  [...changes].map(([name, value]) => ({ key: PREFIX + name, value: value === null ? null : JSON.stringify(value) }))

export class Desired {
  readonly json: string
  readonly revision: number
  /** The value this text was last found equal to: the next comparison need not look further. */
  #same: WeakRef<Plain> | undefined
  #summary: NodeSummary | undefined

  constructor(json: string, revision: number, value?: Plain) {
    this.json = json
    this.revision = revision
    this.#same = value === undefined ? undefined : new WeakRef(value)
  }

  equals(value: Plain): boolean {
    if (this.#same?.deref() === value) return true
    const equal = this.json === JSON.stringify(value)
    if (equal) this.#same = new WeakRef(value)
    return equal
  }

  get value(): Plain {
    return JSON.parse(this.json) as Plain
  }

  get summary(): NodeSummary {
    return (this.#summary ??= summarise(this.value))
  }
}

/** What lists show of a node. */
export interface NodeSummary {
  readonly cluster: string
  readonly groups: readonly string[]
  readonly image: string | null
  readonly address: string | null
}

function summarise(value: Plain): NodeSummary {
  const boot = value['boot'] as { image?: string } | undefined
  const interfaces = Object.values((value['interfaces'] ?? {}) as Record<string, { address?: string }>)
  return {
    cluster: value['cluster'] as string,
    groups: value['groups'] as string[],
    image: boot?.image ?? null,
    address: interfaces.find(one => one.address !== undefined)?.address ?? null,
  }
}
