/**
 * npm run bench            every bench
 * npm run bench site cli   these
 */
import { bootBench } from './boot.ts'
import { cliBench } from './cli.ts'
import { type Bench, round } from './figure.ts'
import { filesBench } from './files.ts'
import { dhcpBench } from './dhcp.ts'
import { imagesBench } from './images.ts'
import { labBench } from './lab.ts'
import { nodesetBench } from './nodeset.ts'
import { serverBench } from './server.ts'
import { siteBench } from './site.ts'

const benches: Readonly<Record<string, Bench>> = {
  boot: bootBench,
  cli: cliBench,
  dhcp: dhcpBench,
  files: filesBench,
  images: imagesBench,
  lab: labBench,
  nodeset: nodesetBench,
  server: serverBench,
  site: siteBench,
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter(name => !(name in benches))
if (unknown.length > 0) {
  process.stderr.write(
    `error: no bench is named ${unknown.join(', ')}\nhint:  choose from ${Object.keys(benches).join(', ')}\n`,
  )
  process.exit(2)
}
for (const [name, bench] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  for await (const figure of bench())
    process.stdout.write(`${JSON.stringify({ ...figure, value: round(figure.value) })}\n`)
}
