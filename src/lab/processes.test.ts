import { randomBytes } from 'node:crypto'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Program, startProgram } from '../lib/program.ts'
import { LAB_VARIABLE, type LabNames, labNames } from './names.ts'
import { bootId, endAll, endProcess, identify, isGone, isRunning, processesOf } from './processes.ts'

const newLab = (): LabNames => labNames(`/no/such/${randomBytes(4).toString('hex')}`)

/** Says a word when it is there. */
async function sh(script: string, lab?: LabNames): Promise<Program> {
  const said = Promise.withResolvers<void>()
  const program = await startProgram('sh', ['-c', script], {
    onLine: () => said.resolve(),
    ...(lab !== undefined && { env: { [LAB_VARIABLE]: lab.id } }),
  })
  onTestFinished(() => program.signal('SIGKILL'))
  await said.promise
  return program
}

const WAITING = 'echo here; exec sleep 1000'
/** Whatever it starts ignores the signal too. */
const STUBBORN = `trap '' TERM; echo here; exec sleep 1000`

const known = (program: Program) => {
  const id = identify(program.pid)
  if (id === undefined) throw new Error('it does not run')
  return id
}

describe('a process', () => {
  it('is known by its number, its start and the start of the system', async () => {
    const program = await sh(WAITING)
    const id = known(program)
    expect(id).toEqual({ pid: program.pid, start: expect.stringMatching(/^\d+$/), boot: bootId() })
    expect(isRunning(id)).toBe(true)
    expect(isRunning({ ...id, start: String(Number(id.start) - 1) })).toBe(false)
    expect(isRunning({ ...id, boot: '00000000-0000-0000-0000-000000000000' })).toBe(false)
  })

  it('that has ended does not run, also while its parent has not noticed', async () => {
    const said = Promise.withResolvers<number>()
    const parent = await startProgram('sh', ['-c', 'sleep 0 & echo $!; exec sleep 1000'], {
      onLine: line => said.resolve(Number(line)),
    })
    onTestFinished(() => parent.signal('SIGKILL'))
    const child = await said.promise
    const zombie = async (): Promise<boolean> => (await readFile(`/proc/${child}/stat`, 'utf8')).includes(' Z ')
    await expect.poll(zombie, { timeout: 60_000 }).toBe(true)
    expect(identify(child)).toBeUndefined()
  })

  it('ends when it is asked to', async () => {
    const program = await sh(WAITING)
    await endProcess(known(program))
    expect(await program.ended).toBe('SIGTERM')
  })

  it('that does not listen is killed', async () => {
    const program = await sh(STUBBORN)
    await endProcess(known(program), 50)
    expect(await program.ended).toBe('SIGKILL')
  })

  it('is left alone when its number has become that of another', async () => {
    const program = await sh(WAITING)
    await endProcess({ ...known(program), start: '1' })
    expect(isRunning(known(program))).toBe(true)
    expect(await isGone(known(program), 20)).toBe(false)
  })
})

describe('the processes of a lab', () => {
  it('are those that say so, and their children, whoever looks after them now', async () => {
    const lab = newLab()
    const [parent, other] = [await sh('sleep 1000 & echo here; wait', lab), await sh(WAITING, newLab())]
    await sh(WAITING)
    const found = await processesOf(lab)
    expect(found).toHaveLength(2)
    expect(found).toContainEqual({ ...known(parent), parent: process.pid })
    expect(new Set(found.map(each => each.parent))).toEqual(new Set([process.pid, parent.pid]))
    parent.signal('SIGKILL')
    await parent.ended
    expect(await processesOf(lab)).toHaveLength(1)
    expect(await endAll(lab)).toBe(1)
    expect(await processesOf(lab)).toEqual([])
    expect(isRunning(known(other))).toBe(true)
  })

  it('are ended parents first', async () => {
    const lab = newLab()
    const lines: string[] = []
    // Had its child been ended first, the parent would have said so.
    const script = `trap 'echo asked; exit 0' TERM; sleep 1000 & echo here; wait $!; echo "child ended"; sleep 1000`
    const parent = await startProgram('sh', ['-c', script], {
      env: { [LAB_VARIABLE]: lab.id },
      onLine: line => lines.push(line),
    })
    await expect.poll(() => lines, { timeout: 60_000 }).toEqual(['here'])
    expect(await endAll(lab)).toBe(2)
    expect(await parent.ended).toBe(0)
    await expect.poll(() => lines, { timeout: 60_000 }).toEqual(['here', 'asked'])
  })

  it('are never ourselves', async () => {
    const lab = newLab()
    const script = `
      const { endAll } = await import(${JSON.stringify(new URL('processes.ts', import.meta.url).href)})
      console.log(await endAll(${JSON.stringify(lab)}))`
    const lines: string[] = []
    const args = ['-c', '"$@" & wait $!', 'sh', process.execPath, '--input-type=module', '-e', script]
    const program = await startProgram('sh', args, {
      env: { [LAB_VARIABLE]: lab.id },
      onLine: line => lines.push(line),
    })
    expect(await program.ended).toBe(0)
    await expect.poll(() => lines, { timeout: 60_000 }).toContain('0')
  })

  it('are found while they turn into other programs', async () => {
    const lab = newLab()
    await using dir = await mkdtempDisposable(join(tmpdir(), 'muster-exec-'))
    const script = join(dir.path, 'again')
    await writeFile(script, '#!/bin/sh\n[ $# -gt 0 ] || echo here\nexec "$0" again\n', { mode: 0o755 })
    const program = await sh(`exec ${script}`, lab)
    for (let time = 0; time < 50; time++) expect(await processesOf(lab)).toHaveLength(1)
    program.signal('SIGKILL')
    await program.ended
  })
})
