import { once } from 'node:events'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ApiClient } from '../../api/client.ts'
import type { BootExplanation } from '../../api/schemas.ts'
import { openImageStore } from '../../images/store/store.ts'
import { type Cast, castOf } from '../../lab/cluster.ts'
import { attachConsole, printLog } from '../../lab/console.ts'
import { type Lab, type LabReport, openLab } from '../../lab/lab.ts'
import { LAB_VARIABLE } from '../../lab/names.ts'
import { requireLab } from '../../lab/requirements.ts'
import { publishSimulatedImage } from '../../lab/simulated/image.ts'
import { labMac, simulate } from '../../lab/simulated/simulate.ts'
import type { SimulatedNode } from '../../lab/simulated/node.ts'
import type { LabStatus } from '../../lab/status.ts'
import { makeDirectory } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { parseNodeSet } from '../../lib/nodeset/index.ts'
import { startProgram } from '../../lib/program.ts'
import { parseSize } from '../../lib/size.ts'
import { checkSite } from '../../site/check.ts'
import { siteInvalid } from '../../site/problems.ts'
import { type Site, openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import type { Io } from '../io.ts'
import { wholeNumber } from '../numbers.ts'
import { Output, plural, table } from '../output.ts'
import { BootDisplay } from '../boot-display.ts'
import { build } from './image-build.ts'
import { mustPass } from './image-test.ts'

interface DirOption {
  readonly dir?: string
}

interface UpOptions extends DirOption {
  readonly nodes: string
  readonly simulated: string
  readonly strangers: string
  readonly firmware: 'bios' | 'uefi'
  readonly memory: string
  readonly port: string
  readonly wait: boolean
}

const MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url))
/** Under TCG a boot takes a minute; a machine that is busy with other things may need several. */
const PATIENCE = 15 * 60_000

const labDir = (io: Io, options: DirOption): string => resolve(io.cwd, options.dir ?? io.env['MUSTER_LAB'] ?? 'lab')

export async function up(call: Call<UpOptions>): Promise<number | void> {
  const { io, out, options } = call
  const counts = { machines: wholeNumber(options.nodes, 0), simulated: wholeNumber(options.simulated, 0) }
  const strangers = Array.from({ length: wholeNumber(options.strangers, 0) }, (_, index) => `stranger${index + 1}`)
  const isWired = counts.machines + strangers.length > 0
  if (isWired) await requireLab(options.firmware)
  const memory = Math.round((parseSize(options.memory) ?? 0) / 2 ** 20)
  if (memory < 256) throw new MusterError('USAGE', `${options.memory} is too little memory for a machine`)
  const siteAt = await siteDir(io, options)
  const cast = castOf(await validSite(siteAt), { ...counts, isWired })
  const lab = await openLab(labDir(io, options))
  const data = join(lab.dir, 'data')
  await makeDirectory(data, 0o700)
  const kernel = await provideImages(call, cast, siteAt, data, isWired)
  const client = new ApiClient({ server: join(data, 'muster.sock') })
  const machines = [...cast.machines, ...strangers.map(name => ({ name, mac: labMac(name) }))]
  const say = (text: string): void => out.note(`  ${text}`)
  const status = await lab.up(
    {
      nodes: machines.map(({ name, mac }) => ({ name, mac, memory })),
      firmware: options.firmware,
      addresses: isWired ? cast.addresses : [],
      server: serverCommand(lab.dir, siteAt, data, { port: wholeNumber(options.port, 0), isWired, client }),
      ...(kernel !== undefined && { kernel }),
      off: true,
      signal: io.interrupted,
    },
    progressOf(say),
  )
  try {
    if (cast.places.length > 0) await client.send('POST', '/api/v1/places', { places: cast.places, source: 'lab' })
    await client.send('POST', '/api/v1/site/apply', { allowDirty: true })
    say(describe({ machines: machines.length, simulated: cast.simulated.length }, options.firmware, status))
    const failed = await powerOn(call, lab, client, cast, strangers)
    await out.result({ ...(await lab.status()), failed }, () => whereAbouts(status, siteAt))
    return failed.length > 0 ? 1 : 0
  } catch (error) {
    await lab.down()
    if (!io.interrupted.aborted) throw error
    out.note('interrupted: the lab is down again')
    return 130
  }
}

/** Resolves with the nodes that did not become ready. */
async function powerOn(
  { io, options }: Call<UpOptions>,
  lab: Lab,
  client: ApiClient,
  cast: Cast,
  strangers: readonly string[],
): Promise<readonly string[]> {
  const [machines, simulated] = [cast.machines, cast.simulated].map(nodes => nodes.map(({ name }) => name)) as [
    string[],
    string[],
  ]
  const display = new BootDisplay(io, client, machines)
  await lab.power([...machines, ...strangers], 'on')
  if (simulated.length > 0) await startSimulation(lab, client, cast.simulated)
  return options.wait ? display.until(simulated, PATIENCE, io.interrupted) : []
}

async function validSite(dir: string): Promise<Site> {
  const site = await openSite(await directorySource(dir))
  const problems = checkSite(site)
  if (problems.length > 0) throw siteInvalid(problems)
  return site
}

/** Builds what is not there; resolves with a kernel to try KVM with. */
async function provideImages(
  call: Call<UpOptions>,
  cast: Cast,
  site: string,
  data: string,
  isWired: boolean,
): Promise<string | undefined> {
  const store = await openImageStore(join(data, 'images'))
  if (!isWired) {
    for (const name of cast.images)
      if ((await store.latest(name)) === undefined) await publishSimulatedImage(store, name)
    return undefined
  }
  // What is built on the way is no part of the result.
  const aside = new Output({ ...call.io, stdout: call.io.stderr }, 'table')
  await build({ ...call, out: aside, args: [], rest: cast.images, options: { ...call.options, site, data } })
  for (const name of cast.images) await mustPass(call.io, store, site, name)
  const [first = ''] = cast.images
  const { manifest } = await store.resolve(first)
  const kernel = manifest.artefacts.find(artefact => artefact.type === 'kernel')
  return kernel === undefined ? undefined : store.pathOf(kernel.sha256)
}

function serverCommand(
  dir: string,
  site: string,
  data: string,
  { port, isWired, client }: { port: number; isWired: boolean; client: ApiClient },
) {
  const words = ['serve', '--site', site, '--data', data, '--listen', 'fd:3']
  return {
    command: process.execPath,
    args: [
      '--disable-warning=ExperimentalWarning',
      '--max-semi-space-size=4',
      '--expose-gc',
      MAIN,
      ...words,
      ...(isWired ? [] : ['--boot-listen', '127.0.0.1:0']),
    ],
    log: join(dir, 'serve.log'),
    port,
    ready: (_: string, signal: AbortSignal) => answering(client, signal),
  }
}

async function answering(client: ApiClient, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await client.get('/api/v1/status')
      return
    } catch {
      await new Promise(done => setTimeout(done, 100))
    }
  }
}

const progressOf = (say: (text: string) => void): LabReport => ({
  begin: () => {},
  end: (step, detail) => {
    if (step !== 'clean up' && step !== 'machines') say(`${step.padEnd(12)} ${detail}`)
    else if (step === 'clean up' && !detail.startsWith('nothing')) say(`${step.padEnd(12)} ${detail}`)
  },
})

function describe(
  counts: { machines: number; simulated: number },
  firmware: string,
  { accelerator }: LabStatus,
): string {
  const parts = [
    ...(counts.machines > 0
      ? [`${plural(counts.machines, 'machine')}, firmware ${firmware}, ${accelerator?.accelerator.toUpperCase() ?? ''}`]
      : []),
    ...(counts.simulated > 0 ? [plural(counts.simulated, 'simulated node')] : []),
  ]
  return `lab          ${parts.join('; ')}`
}

const whereAbouts = ({ server, nodes }: LabStatus, site: string): string[] => [
  '',
  `  api      ${server?.url ?? ''}/api/v1   log ${server?.log ?? ''}`,
  `  site     ${site}`,
  ...nodes.map(({ name, consoleLog }) => `  ${name.padEnd(8)} console: muster lab console ${name}   log ${consoleLog}`),
  '  try      muster node ls · muster node timeline NODE · muster boot explain NODE · muster discover ls',
  '  stop     muster lab down',
]

async function startSimulation(lab: Lab, client: ApiClient, nodes: readonly SimulatedNode[]): Promise<void> {
  const file = join(lab.dir, 'simulated.json')
  await writeFile(file, JSON.stringify(nodes.map(({ name, mac }) => ({ name, mac }))))
  const { servers } = await client.get<BootExplanation>(`/api/v1/nodes/${nodes[0]?.name}/boot`)
  const args = ['--disable-warning=ExperimentalWarning', MAIN, 'lab', 'simulate', servers[0] ?? '', '--machines', file]
  const status = await lab.status()
  await using log = await open(join(lab.dir, 'simulated.log'), 'a', 0o600)
  const command = status.nodes.length > 0 ? lab.inHead(process.execPath, args) : ([process.execPath, args] as const)
  await startProgram(...command, { outputTo: log.fd, detached: true, env: { [LAB_VARIABLE]: lab.names.id } })
}

export async function runSimulation({
  io,
  args: [server = ''],
  options,
}: Call<{ machines?: string; whole?: boolean }>): Promise<void> {
  const nodes = JSON.parse(await readFile(resolve(io.cwd, options.machines ?? ''), 'utf8')) as SimulatedNode[]
  await simulate(nodes, {
    servers: [server],
    signal: io.interrupted,
    fetch: options.whole === true ? 'whole' : 'headers',
  })
}

export async function down({ io, out, options }: Call<DirOption>): Promise<void> {
  const lab = await openLab(labDir(io, options))
  const was = await lab.down()
  await out.result({ dir: lab.dir, was }, () => [was ? 'the lab is down' : 'there was no lab'])
}

export async function status({ io, out, options }: Call<DirOption>): Promise<void> {
  const lab = await openLab(labDir(io, options))
  const found = await lab.status()
  await out.result(found, () => [
    `lab ${found.state} in ${found.dir}${found.server === undefined ? '' : `, server ${found.server.isRunning ? found.server.url : 'not running'}`}`,
    ...(found.nodes.length === 0
      ? []
      : table(
          ['NODE', 'POWER', 'MAC', 'CONSOLE LOG'],
          found.nodes.map(node => [node.name, node.power, node.mac, node.consoleLog]),
        )),
  ])
}

export async function power({ io, out, args: [nodes = '', action = ''], options }: Call<DirOption>): Promise<void> {
  const lab = await openLab(labDir(io, options))
  const names = [...parseNodeSet(nodes)]
  await lab.power(names, action as 'on' | 'off' | 'cycle')
  await out.result({ nodes: names, action }, () => [`${nodes}: ${action}`])
}

export async function console({ io, options, args: [name = ''] }: Call<DirOption>): Promise<void> {
  const lab = await openLab(labDir(io, options))
  const machine = await lab.machine(name)
  if (io.stdin.isTTY === true) await attachConsole(machine, io, io.interrupted)
  else await printLog(machine.files.consoleLog, io.stdout, { follow: io.interrupted })
}

export async function log({ io, options, args: [name = ''] }: Call<DirOption & { follow?: boolean }>): Promise<void> {
  const machine = await (await openLab(labDir(io, options))).machine(name)
  await printLog(machine.files.consoleLog, io.stdout, options.follow === true ? { follow: io.interrupted } : {})
  if (io.stdout.writableNeedDrain) await once(io.stdout, 'drain')
}
