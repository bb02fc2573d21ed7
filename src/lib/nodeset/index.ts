/**
 * Sets of node names in the notation of ClusterShell and Slurm.
 *
 *   String(parseNodeSet('n[001-128]!n007'))   → 'n[001-006,008-128]'
 *   [...parseNodeSet('r[1-2]n[1-2]')]         → ['r1n1', 'r1n2', 'r2n1', 'r2n2']
 *   fold(['n3', 'n1', 'n2', 'login'])         → 'login,n[1-3]'
 */
import { NodeSet } from './set.ts'

export { compareNames, numbersOf } from './name.ts'
export { parseNodeSet, type GroupResolver } from './parse.ts'
export { NodeSet }

export const fold = (names: Iterable<string>): string => NodeSet.of(names).toString()
