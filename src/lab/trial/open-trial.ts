import { appendFile, copyFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { artefactOf } from '../../images/manifest.ts'
import { bringTests } from '../../images/tests/copy-tests.ts'
import { type OpenSubject, TIMED_OUT } from '../../images/tests/subject.ts'
import type { MachineToOpen } from '../../images/tests/test-image.ts'
import { makeDirectory } from '../../lib/dirs.ts'
import { chooseAccelerator } from '../kvm.ts'
import { labNames } from '../names.ts'
import { memoryFor } from './arguments.ts'
import { type TrialMachine, startMachine } from './machine.ts'
import { Progress } from './progress.ts'
import { requireTrial } from './requirements.ts'
import { MAC, NODE, openTrialServer } from './server.ts'
import { SerialShell } from './shell.ts'

/** Ten minutes: under emulation a boot takes one. */
const TIMEOUT = 600_000
const LAST_WORDS = 1500

/**
 * The image, booted as a node boots it: its kernel, our initramfs, its root fetched from a boot server, up to the ready of
 * its agent. Only the loader is left out, for QEMU starts the kernel itself. It has no disk, and a network that leads to
 * that server alone. Commands go over a serial line, so nothing is added to the image.
 */
export async function openTrial(options: MachineToOpen): Promise<OpenSubject> {
  const { image, store, tree, tests, work, signal, timeout = TIMEOUT } = options
  const { manifest } = image
  await requireTrial(manifest, tree)
  const end = performance.now() + timeout
  await using stack = new AsyncDisposableStack()
  const progress = new Progress()
  const server = stack.use(await openTrialServer(image, store, sighting => progress.see(sighting)))
  const { form } = server.decision
  const root = server.decision.image[form]
  const pathOf = (blob: { readonly sha256: string } | undefined): string => store.pathOf(blob?.sha256 ?? '')
  const kernel = pathOf(artefactOf(manifest, 'kernel'))
  const state = join(store.dir, 'state')
  await makeDirectory(state, 0o700)
  const { accelerator } = await chooseAccelerator({ names: labNames(work), kernel, cache: join(state, 'kvm.json') })
  const closing = new AbortController()
  const stop = AbortSignal.any([signal, closing.signal])
  const machine = stack.use(
    await startMachine(
      {
        name: NODE,
        mac: MAC,
        accelerator,
        memory: memoryFor(form, { packed: root?.size ?? 0, tree: manifest.size }),
        kernel,
        initrd: await initrdOf(pathOf(form === 'squashfs' ? server.decision.image.initrd : root), server.trust, work),
        args: server.args,
        port: server.port,
      },
      { work, signal },
    ),
  )
  const shell = new SerialShell(machine.line, { signal: stop, trouble: machine.trouble })
  // Commands end first: they would take the end of the machine for an answer.
  stack.defer(() => closing.abort(new Error('the machine is switched off')))
  await untilReady(machine, progress, { signal, timeout })
  const subject: Pick<OpenSubject, 'place' | 'run'> = {
    place: 'vm',
    run: (argv, more) => orTrouble(machine, stop, shell.run(argv, more)),
  }
  await orTrouble(machine, stop, shell.open())
  await mustBeUp(machine, subject, Math.max(1000, Math.round(end - performance.now())))
  await bringTests(subject, tests)
  const owned = stack.move()
  return { ...subject, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Kernels unpack one archive after the other, each at a multiple of four bytes. */
async function initrdOf(path: string, more: Buffer, work: string): Promise<string> {
  const file = join(work, 'initrd')
  await copyFile(path, file)
  const { size } = await stat(file)
  await appendFile(file, Buffer.concat([Buffer.alloc(-size & 3), more]))
  return file
}

async function untilReady(
  { failed, trouble }: TrialMachine,
  progress: Progress,
  { signal, timeout }: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeout)])
  const late = Promise.withResolvers<'late'>()
  const stop = (): void => late.resolve('late')
  limit.addEventListener('abort', stop, { once: true })
  if (limit.aborted) stop()
  const outcome = await Promise.race([progress.outcome, late.promise, failed]).finally(() =>
    limit.removeEventListener('abort', stop),
  )
  signal.throwIfAborted()
  if (outcome === 'failing') throw trouble(`cannot boot the image: ${progress.words}`)
  if (outcome === 'late') throw trouble(`is not ready after ${timeout / 1000} s: ${progress.words}`)
}

/** Services may start after the agent; some of it may have failed (degraded), which is for tests to find. */
async function mustBeUp(machine: TrialMachine, { run }: Pick<OpenSubject, 'run'>, timeout: number): Promise<void> {
  const { exitCode, stdout, stderr } = await run(['systemctl', 'is-system-running', '--wait'], { timeout })
  if (exitCode === TIMED_OUT)
    throw machine.trouble(`has an agent that is ready, and services that have not started ${timeout / 1000} s later`)
  const state = stdout.toString('utf8').trim()
  if (['running', 'degraded', 'starting'].includes(state)) return
  throw machine.trouble(`did not come up: its state is ${state || stderr.toString('utf8').trim() || 'unknown'}`)
}

/** A command may have been torn away with the machine: no answer of its own. */
async function orTrouble<Result>(machine: TrialMachine, stop: AbortSignal, work: Promise<Result>): Promise<Result> {
  try {
    return await Promise.race([work, machine.failed])
  } catch (error) {
    // That the line is closed is heard before the end of the machine.
    if (!stop.aborted) await Promise.race([machine.failed, pause(LAST_WORDS)])
    throw error
  }
}
