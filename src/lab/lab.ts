import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../lib/errors.ts'
import { exists } from '../lib/dirs.ts'
import { type Choice, chooseAccelerator } from './kvm.ts'
import { withLabLock } from './lock.ts'
import { Machine, type PowerAction } from './machine.ts'
import { type LabNames, labNames, portName, realDirectory } from './names.ts'
import { type Impairment, LabNetwork } from './network.ts'
import { type ProcessId, bootId, endAll, endProcess, identify, isRunning, processesOf, send } from './processes.ts'
import { type IsReady, type LabOptions, type LabPlan, isWired, planOf } from './plan.ts'
import { startServer, urlOf } from './server.ts'
import { type LabState, readState, removeState, writeState } from './state.ts'
import { type LabStatus, stateOf, statusOf } from './status.ts'

/** In the order in which they come. */
export const LAB_STEPS = ['clean up', 'network', 'accelerator', 'server', 'machines'] as const
export type LabStep = (typeof LAB_STEPS)[number]

/** Who is told how a lab comes up. */
export interface LabReport {
  begin(step: LabStep): void
  end(step: LabStep, detail: string): void
}

const SILENT: LabReport = { begin: () => {}, end: () => {} }
/** Somebody else brings it up or down: that takes longer than anybody waits. */
const IMPATIENT = 1000
/** Somebody else switches a machine. */
const PATIENT = 120_000

export async function openLab(dir: string): Promise<Lab> {
  return new Lab(await realDirectory(dir))
}

/**
 * A virtual cluster that lives in a directory. Nobody has to stay: machines and server run in the background, and every
 * command finds them again from the directory.
 */
export class Lab {
  readonly dir: string
  readonly names: LabNames
  readonly #network: LabNetwork

  constructor(dir: string) {
    this.dir = dir
    this.names = labNames(dir)
    this.#network = new LabNetwork(this.names)
  }

  /** Makes everything, or nothing: what fails on the way is cleared away, except for the logs. */
  async up(options: LabOptions, report: LabReport = SILENT): Promise<LabStatus> {
    const plan = planOf(options)
    await withLabLock(this.dir, IMPATIENT, async () => {
      const old = await this.#stateOrNothing()
      if (old?.phase === 'running' && old.owner.boot === bootId())
        throw new MusterError('LAB_RUNNING', `a lab runs in ${this.dir} already`)
      try {
        await this.#build(plan, options, report)
      } catch (error) {
        // Should that fail as well, the next `up` or `down` does it; the first failure is the one to tell.
        await this.#clear({ keepLogs: true }).catch(() => {})
        throw error
      }
    })
    return this.status()
  }

  /** Takes everything away that `up` has made; false where there was nothing. What others keep in the directory stays. */
  async down(): Promise<boolean> {
    if (!(await exists(this.dir)) && !(await this.#hasLeftovers())) return false
    return await withLabLock(this.dir, IMPATIENT, async () => {
      const state = await this.#stateOrNothing()
      if (state !== undefined) await writeState(this.dir, { ...state, phase: 'stopping', owner: thisProcess() })
      const hadLeftovers = await this.#clear()
      return hadLeftovers || state !== undefined
    })
  }

  /** Takes away what somebody who was killed has left; a lab that runs is left alone. */
  async cleanUp(): Promise<boolean> {
    const state = await this.#stateOrNothing()
    return state === undefined || stateOf(state) === 'interrupted' ? await this.down() : false
  }

  async status(): Promise<LabStatus> {
    const state = await readState(this.dir)
    const place = { id: this.names.id, dir: this.dir }
    if (state === undefined)
      return { ...place, state: (await this.#hasLeftovers()) ? 'interrupted' : 'down', nodes: [] }
    const { plan, accelerator, server } = state
    const nodes = await Promise.all(this.#machines(state).map(statusOf))
    const isUp = server !== undefined && isRunning(server)
    return {
      ...place,
      state: stateOf(state),
      firmware: plan.firmware,
      ...(accelerator && { accelerator }),
      server: { url: urlOf(plan.server.port), log: plan.server.log, isRunning: isUp, ...(isUp && { pid: server.pid }) },
      nodes,
    }
  }

  /** All of them at once. */
  async power(nodes: readonly string[], action: PowerAction): Promise<void> {
    await withLabLock(this.dir, PATIENT, async () => {
      const state = await this.#running()
      await all(this.#some(state, nodes).map(machine => machine.power(action)))
    })
  }

  /** A machine of the lab: its files, its sockets. */
  async machine(node: string): Promise<Machine> {
    const [machine] = this.#some(await this.#running(), [node])
    if (machine === undefined) throw unknownNode(node)
    return machine
  }

  /** What the network does to packets of these nodes from now on; an empty impairment is none. */
  async impair(nodes: readonly string[] | 'all', impairment: Impairment): Promise<void> {
    const state = await this.#running()
    const names = nodes === 'all' ? state.plan.nodes.map(({ name }) => name) : nodes
    const ports = this.#some(state, names).map(({ port }) => port)
    await this.#network.impair(ports, impairment)
  }

  /** A node's cable is pulled out (`down`), or put in again. */
  async plug(node: string, state: 'up' | 'down'): Promise<void> {
    await this.#network.setPort((await this.machine(node)).port, state)
  }

  /** Starts the server again as it was started first, on the same port of the host. */
  async startServer(ready?: IsReady): Promise<void> {
    await withLabLock(this.dir, PATIENT, async () => {
      const state = await this.#running()
      if (state.server !== undefined && isRunning(state.server))
        throw new MusterError('LAB_RUNNING', `the server runs already, as process ${state.server.pid}`)
      await this.#startServer(state, ready)
    })
  }

  /** Ends the server; the machines go on. */
  async stopServer(how: 'asked' | 'killed' = 'asked'): Promise<void> {
    await withLabLock(this.dir, PATIENT, async () => {
      const { server } = await this.#running()
      if (server === undefined || !isRunning(server)) return
      if (how === 'killed') send(server, 'SIGKILL')
      await endProcess(server)
    })
  }

  /** The command as it is to be started beside the server, among the nodes. */
  inHead(command: string, args: readonly string[]): readonly [command: string, args: readonly string[]] {
    return this.#network.inHead(command, args)
  }

  async #build(plan: LabPlan, options: LabOptions, report: LabReport): Promise<void> {
    const step = async (name: LabStep, work: () => Promise<string>): Promise<void> => {
      options.signal?.throwIfAborted()
      report.begin(name)
      report.end(name, await work())
    }
    await step('clean up', async () => ((await this.#clear()) ? 'what an earlier lab has left' : 'nothing was left'))
    let state: LabState = { version: 1, phase: 'starting', owner: thisProcess(), plan }
    await writeState(this.dir, state)
    if (isWired(plan))
      await step('network', async () => {
        const ports = plan.nodes.map(({ name }) => portName(name))
        await this.#network.create(plan.addresses, ports)
        return plan.addresses.map(({ cidr }) => cidr).join(', ')
      })
    if (plan.nodes.length > 0)
      await step('accelerator', async () => {
        const accelerator = await this.#accelerator(options)
        state = { ...state, accelerator }
        return `${accelerator.accelerator}: ${accelerator.reason}`
      })
    await step('server', async () => {
      state = await this.#startServer(state, options.server.ready, options.signal)
      return urlOf(state.plan.server.port)
    })
    await step('machines', async () => {
      const machines = options.off === true ? [] : this.#machines(state)
      await all(machines.map(machine => machine.power('on')))
      return `${machines.length} on`
    })
    await writeState(this.dir, { ...state, phase: 'running' })
  }

  async #accelerator({ accelerator, kernel }: LabOptions): Promise<Choice> {
    if (accelerator !== undefined) return { accelerator, reason: 'as asked for' }
    return chooseAccelerator({
      names: this.names,
      cache: join(this.dir, 'kvm.json'),
      ...(kernel !== undefined && { kernel }),
    })
  }

  async #startServer(state: LabState, isReady?: IsReady, signal?: AbortSignal): Promise<LabState> {
    const server = await startServer(state.plan.server, {
      lab: this.names.id,
      within: isWired(state.plan) ? (...words) => this.#network.inHead(...words) : (...words) => words,
    })
    const plan = { ...state.plan, server: { ...state.plan.server, port: server.port } }
    const next = { ...state, plan, server: server.process }
    await writeState(this.dir, next)
    if (isReady !== undefined) await server.whenReady(isReady, signal)
    return next
  }

  /** Processes, namespaces, sockets, disks; in the end the note that there is anything. True where there was. */
  async #clear({ keepLogs = false } = {}): Promise<boolean> {
    const ended = await endAll(this.names)
    const hadNetwork = await this.#network.destroy()
    await rm(this.names.run, { recursive: true, force: true })
    await this.#removeNodes(keepLogs)
    await removeState(this.dir)
    return ended > 0 || hadNetwork
  }

  async #removeNodes(keepLogs: boolean): Promise<void> {
    const dir = join(this.dir, 'nodes')
    if (!keepLogs) return await rm(dir, { recursive: true, force: true })
    for (const node of await readdir(dir).catch(() => []))
      for (const file of ['disk.img', 'uefi-variables.fd']) await rm(join(dir, node, file), { force: true })
  }

  async #hasLeftovers(): Promise<boolean> {
    if ((await this.#network.leftovers()).length > 0 || (await exists(this.names.run))) return true
    return (await processesOf(this.names)).length > 0
  }

  async #running(): Promise<LabState> {
    const state = await readState(this.dir)
    if (state === undefined || stateOf(state) === 'interrupted')
      throw new MusterError('LAB_NOT_RUNNING', `no lab runs in ${this.dir}`)
    return state
  }

  /** Whoever clears up can do so without knowing what there was. */
  #stateOrNothing(): Promise<LabState | undefined> {
    return readState(this.dir).catch(() => undefined)
  }

  #machines({ plan, accelerator }: LabState): Machine[] {
    return plan.nodes.map(node => {
      const spec = { ...node, firmware: plan.firmware, accelerator: accelerator?.accelerator ?? 'tcg' }
      return new Machine(spec, join(this.dir, 'nodes', node.name), this.names, this.#network)
    })
  }

  #some(state: LabState, names: readonly string[]): Machine[] {
    const machines = new Map(this.#machines(state).map(machine => [machine.spec.name, machine]))
    return names.map(name => {
      const machine = machines.get(name)
      if (machine === undefined) throw unknownNode(name)
      return machine
    })
  }
}

/** Waits for all of them, also when one fails: nothing goes on behind our back. */
async function all(work: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(work)) if (result.status === 'rejected') throw result.reason
}

function thisProcess(): ProcessId {
  const id = identify(process.pid)
  if (id === undefined) throw new Error('this process is not in /proc')
  return id
}

const unknownNode = (name: string): MusterError =>
  new MusterError('NODE_UNKNOWN', `no machine of the lab is named ${name}`, {
    hint: 'list them with: muster lab status',
  })
