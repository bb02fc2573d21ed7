import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import { type Lab, openLab } from '../../src/lab/lab.ts'
import { processesOf } from '../../src/lab/processes.ts'
import { fixture, labOptions, temporaryLab } from '../../src/lab/testing.ts'
import { exec } from '../../src/lib/exec.ts'
import { exists } from '../../src/lib/dirs.ts'

/** A lab whose owner is killed with SIGKILL, at any instant, leaves nothing that the next does not clear away. */
const KILLED = -1
const ROUNDS = 6
const LONGEST = 1500

async function newLab(): Promise<Lab> {
  const dir = await mkdtemp(join(tmpdir(), 'muster-kill-'))
  onTestFinished(async () => {
    await (await openLab(dir)).down()
    await rm(dir, { recursive: true, force: true })
  })
  return openLab(dir)
}

const killed = async ({ dir }: Lab, when: string, allow = [KILLED]): Promise<void> => {
  await exec(process.execPath, ['--disable-warning=ExperimentalWarning', fixture('up'), dir, when], { allow })
}

/** All that a lab can leave on a machine. */
async function leftBehind({ dir, names }: Lab): Promise<string[]> {
  const namespaces = await readdir('/run/netns').catch(() => [])
  const processes = await processesOf(names)
  const files = (await readdir(dir)).filter(name => name !== 'lock' && name !== 'server.log')
  return [
    ...namespaces.filter(name => name.includes(names.id)),
    ...processes.map(({ pid }) => `process ${pid}`),
    ...((await exists(names.run)) ? [names.run] : []),
    ...files,
  ]
}

describe('whoever brings up a lab is killed', () => {
  const steps = ['network', 'accelerator', 'server', 'machines']
  const instants = ['end clean up', ...steps.flatMap(step => [`begin ${step}`, `end ${step}`]), 'ready']

  test.each(instants)('at: %s', async when => {
    const lab = await newLab()
    await killed(lab, when)
    const isBefore = when === 'end clean up'
    expect((await lab.status()).state).toBe(isBefore ? 'down' : 'interrupted')
    expect(await lab.cleanUp()).toBe(!isBefore)
    expect(await leftBehind(lab)).toEqual([])
    expect((await lab.status()).state).toBe('down')
  })

  it('when it is up: nobody needs to stay', async () => {
    const lab = await newLab()
    await killed(lab, 'up')
    const { state, server, nodes } = await lab.status()
    expect([state, server?.isRunning, ...nodes.map(({ power }) => power)]).toEqual(['up', true, 'on', 'on'])
    expect(await lab.down()).toBe(true)
    expect(await leftBehind(lab)).toEqual([])
  })

  it('at whatever instant', async () => {
    const lab = await newLab()
    for (let round = 0; round < ROUNDS; round++) {
      await killed(lab, String(Math.round(Math.random() * LONGEST)), [KILLED, 0])
      await lab.down()
      expect(await leftBehind(lab)).toEqual([])
    }
  })

  it('and the next brings it up all the same', async () => {
    const lab = await newLab()
    await killed(lab, 'begin machines')
    await killed(lab, 'end machines')
    const steps: string[] = []
    await lab.up(labOptions(lab), { begin: () => {}, end: (step, detail) => steps.push(`${step}: ${detail}`) })
    expect(steps[0]).toBe('clean up: what an earlier lab has left')
    expect((await lab.status()).state).toBe('up')
    expect(await lab.cleanUp()).toBe(false)
    expect((await lab.status()).state).toBe('up')
  })

  it('and its directory is lost as well', async () => {
    const lab = await newLab()
    await killed(lab, 'end machines')
    await rm(lab.dir, { recursive: true })
    expect((await lab.status()).state).toBe('interrupted')
    expect(await lab.cleanUp()).toBe(true)
    expect(await leftBehind(lab)).toEqual([])
    expect(await lab.down()).toBe(false)
  })

  it('and its notes are damaged', async () => {
    const lab = await newLab()
    await killed(lab, 'end machines')
    await writeFile(join(lab.dir, 'state.json'), '{"version": 1, "pha')
    await expect(lab.status()).rejects.toMatchObject({ code: 'STATE_DAMAGED' })
    expect(await lab.cleanUp()).toBe(true)
    expect(await leftBehind(lab)).toEqual([])
  })

  it('and the lab beside it does not notice', async () => {
    const [lab, other] = [await newLab(), await temporaryLab()]
    await other.up(labOptions(other))
    const before = await other.status()
    await killed(lab, 'end machines')
    await lab.cleanUp()
    expect(await leftBehind(lab)).toEqual([])
    expect(await other.status()).toEqual(before)
  })
})
