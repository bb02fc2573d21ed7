/** What nothing refers to any more. */
export interface Dropped {
  readonly lists: readonly string[]
  readonly contents: readonly string[]
}

/** Which lists nodes have and which contents are in them: what has been told once is not told again while somebody needs it. */
export class Holdings {
  readonly #lists = new Map<string, { nodes: number; readonly contents: readonly string[] }>()
  /** How many lists each content is in. */
  readonly #contents = new Map<string, number>()
  readonly #unused = new Set<string>()

  /** One more node has this list; false if it is a new one. */
  holdAgain(list: string): boolean {
    const known = this.#lists.get(list)
    if (known !== undefined) known.nodes++
    return known !== undefined
  }

  /** A node has a new list. Yields the contents that are new, each once. */
  hold(list: string, contents: readonly string[]): string[] {
    this.#lists.set(list, { nodes: 1, contents })
    const fresh = new Set(contents.filter(content => !this.#contents.has(content)))
    for (const content of contents) this.#contents.set(content, (this.#contents.get(content) ?? 0) + 1)
    return [...fresh]
  }

  release(list: string): void {
    const known = this.#lists.get(list)
    if (known !== undefined && --known.nodes === 0) this.#unused.add(list)
  }

  /** Forgets what nobody has any more. Not before all nodes are done: one may take up what another has put down. */
  sweep(): Dropped {
    const dropped = { lists: [] as string[], contents: [] as string[] }
    for (const list of this.#unused) {
      const known = this.#lists.get(list)
      if (known === undefined || known.nodes > 0) continue
      this.#lists.delete(list)
      dropped.lists.push(list)
      for (const content of known.contents) {
        const left = (this.#contents.get(content) ?? 0) - 1
        if (left > 0) this.#contents.set(content, left)
        else if (this.#contents.delete(content)) dropped.contents.push(content)
      }
    }
    this.#unused.clear()
    return dropped
  }
}
