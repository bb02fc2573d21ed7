/**
 * node pack.ts TREE DIR: packs a tree in both forms at once into an empty directory, in a process of its own, and prints
 * how long that took and how much memory the process had at most.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mergeLayers } from '../../src/images/layers/merge.ts'
import { scanLayer } from '../../src/images/layers/scan.ts'
import { writeCpio } from '../../src/lib/cpio/write.ts'
import { writeSquashfs } from '../../src/lib/squashfs/write.ts'
import { timed } from './turns.ts'

const [root = '', to = ''] = process.argv.slice(2)
const time = Math.floor(Date.now() / 1000)
const tree = mergeLayers([{ root, ...(await scanLayer(root, time)) }])
const seconds = await timed(() =>
  Promise.all([
    writeSquashfs(tree, join(to, 'root.squashfs'), { time }),
    writeCpio(tree, join(to, 'root.cpio.zst'), { compression: 'zstd' }),
  ]),
)
const status = await readFile('/proc/self/status', 'utf8')
const megabytes = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1000
process.stdout.write(JSON.stringify({ seconds, megabytes }))
