/**
 * What a YAML file says, with the place of every value: the site's provenance starts here.
 * Lines and columns count from 1, as editors and compilers do.
 */
export interface Place {
  readonly line: number
  readonly column: number
}

export type Scalar = string | number | boolean | null

export interface ScalarTree extends Place {
  readonly kind: 'scalar'
  readonly value: Scalar
  /** A local tag such as `!age`, when the value carries one. */
  readonly tag?: string
}

export interface ListTree extends Place {
  readonly kind: 'list'
  readonly items: readonly Tree[]
}

export interface MapTree extends Place {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, MapEntry>
}

/** An entry's place is that of its key. */
export interface MapEntry extends Place {
  readonly value: Tree
}

export type Tree = ScalarTree | ListTree | MapTree

export interface YamlProblem extends Place {
  readonly message: string
}

/** An empty file has no tree and no problems. */
export interface YamlResult {
  readonly tree?: Tree
  readonly problems: readonly YamlProblem[]
}
