import { exec } from '../src/lib/exec.ts'
import { type Bench, against, seconds } from './figure.ts'
import { MUSTER } from './world.ts'

/** How long the command line itself takes, process start included. */
export const cliBench: Bench = async function* () {
  const help = 1000 * (await seconds(9, () => exec(MUSTER, ['--help'])))
  yield { bench: 'cli', case: 'muster --help', value: help, unit: 'ms', ...against(150, help) }
}
