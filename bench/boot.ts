import { artefactFigures } from './boot/artefacts.ts'
import { heartbeatFigures } from './boot/heartbeats.ts'
import { scriptFigures } from './boot/scripts.ts'
import { stormFigures } from './boot/storm.ts'
import type { Bench } from './figure.ts'

/**
 * Boot services, each server in a process of its own on the first core, whoever asks on the second. Needs root (a network
 * namespace, and to go before what else the machine does), nginx, 2.5 GB in /dev/shm and about eight minutes. On a machine
 * that does other work the ratios to peers say more than those to limits.
 */
export const bootBench: Bench = async function* () {
  yield* scriptFigures()
  yield* heartbeatFigures()
  yield* artefactFigures()
  yield* stormFigures()
}
