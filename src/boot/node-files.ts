/** What the server of nodes knows of their files. Both answers come from memory, at once and without a lock. */
export interface NodeFiles {
  /** The list of a node, as it is to be now; undefined if there is none (nothing wanted). */
  list(node: string): { readonly version: string; readonly text: Buffer } | undefined
  /** A content, if it is in the list of that node. */
  content(node: string, sha256: string): Buffer | undefined
}
