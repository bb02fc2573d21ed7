import { MusterError } from '../../lib/errors.ts'
import { parseSize } from '../../lib/size.ts'
import { wholeNumber } from '../numbers.ts'

/**
 * What one image on its way is reckoned with. Muster itself takes 0.3 GB of it for an image of 400 MB; the rest is for
 * what steps run, and for the container or the machine that tests are run in.
 */
const MEMORY_EACH = 2 * 2 ** 30

export interface BudgetFlags {
  readonly jobs?: string
  readonly memory?: string
}

export interface Machine {
  readonly cores: number
  /** Bytes that are free, or could be. */
  readonly memory: number
}

/** How many images are built at once: as many as there are cores, and as fit into the memory; one in any case. */
export function imagesAtOnce({ jobs, memory }: BudgetFlags, machine: Machine): number {
  const most = jobs === undefined ? machine.cores : wholeNumber(jobs, 1)
  const bytes = memory === undefined ? machine.memory : parseSize(memory)
  if (bytes === undefined) throw new MusterError('USAGE', `${memory} is not a size such as 8G or 6 GiB`)
  return Math.max(1, Math.min(most, Math.floor(bytes / MEMORY_EACH)))
}
