import { mkdir, readFile, readdir, readlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Lab } from '../../src/lab/lab.ts'
import { processesOf } from '../../src/lab/processes.ts'
import { NODE, ip, labOptions, says, temporaryLab } from '../../src/lab/testing.ts'
import type { MusterError } from '../../src/lib/errors.ts'
import { exec } from '../../src/lib/exec.ts'

interface Answer {
  readonly pid: number
  readonly helper: number
  readonly addresses: readonly string[]
  readonly namespace: string
}

/** From the host, as anybody's browser would. */
const ask = async (lab: Lab): Promise<Answer> => {
  const { server } = await lab.status()
  const response = await fetch(server?.url ?? '')
  return (await response.json()) as Answer
}

const answers = async (url: string): Promise<void> => {
  await fetch(url)
}

const withServer = (lab: Lab, change: Partial<ReturnType<typeof labOptions>['server']>, more = {}) => {
  const options = labOptions(lab, more)
  return { ...options, server: { ...options.server, ...change } }
}

const heard = async (lab: Lab): Promise<number> => {
  type Link = { readonly stats64: { readonly rx: { readonly packets: number } } }
  const [link] = await ip<Link>(lab.names.head, '-s', 'link', 'show', 'dev', 'lab0')
  return link?.stats64.rx.packets ?? 0
}

describe('a lab', () => {
  it('comes up step by step, and goes down without a trace', async () => {
    const lab = await temporaryLab()
    await mkdir(join(lab.dir, 'data'))
    await writeFile(join(lab.dir, 'data', 'image'), 'worth keeping')
    expect(await lab.status()).toEqual({ id: lab.names.id, dir: lab.dir, state: 'down', nodes: [] })
    const told: string[] = []
    const status = await lab.up(withServer(lab, { ready: answers }, { nodes: [NODE] }), {
      begin: step => told.push(step),
      end: (step, detail) => told.push(`${step}: ${detail}`),
    })
    const url = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as unknown as string
    expect(told).toEqual([
      'clean up',
      'clean up: nothing was left',
      'network',
      'network: 10.77.0.1/16',
      'accelerator',
      'accelerator: tcg: as asked for',
      'server',
      expect.stringMatching(/^server: http:\/\/127\.0\.0\.1:\d+$/),
      'machines',
      'machines: 1 on',
    ])
    const pid = expect.any(Number) as number
    expect(status).toEqual({
      id: lab.names.id,
      dir: lab.dir,
      state: 'up',
      firmware: 'bios',
      accelerator: { accelerator: 'tcg', reason: 'as asked for' },
      server: { url, log: join(lab.dir, 'server.log'), isRunning: true, pid },
      nodes: [{ name: 'n001', mac: NODE.mac, power: 'on', pid, consoleLog: join(lab.dir, 'nodes/n001/console.log') }],
    })
    await says(status.nodes[0]?.consoleLog ?? '', 'iPXE')
    expect(await lab.down()).toBe(true)
    expect((await readdir(lab.dir)).sort()).toEqual(['data', 'lock', 'server.log'])
    expect(await processesOf(lab.names)).toEqual([])
    expect((await readdir('/run/netns')).filter(name => name.includes(lab.names.id))).toEqual([])
    expect((await readdir('/run')).filter(name => name.includes(lab.names.id))).toEqual([])
    expect(await lab.down()).toBe(false)
  })

  it('has a server that lives among the nodes, and answers on the loopback of the host', async () => {
    const lab = await temporaryLab()
    await lab.up(labOptions(lab))
    const { addresses, namespace, pid } = await ask(lab)
    expect(addresses).toContain('10.77.0.1/16')
    expect(namespace).not.toBe(await readlink('/proc/self/ns/net'))
    expect(pid).toBe((await lab.status()).server?.pid)
    expect((await exec('ip', ['-o', 'address'])).stdout.toString('utf8')).not.toContain('10.77.0.1')
  })

  it('without addresses and nodes has a server only, where we are', async () => {
    const lab = await temporaryLab()
    const told: string[] = []
    await lab.up(labOptions(lab, { addresses: [] }), { begin: step => told.push(step), end: () => {} })
    expect(told).toEqual(['clean up', 'server', 'machines'])
    expect((await ask(lab)).namespace).toBe(await readlink('/proc/self/ns/net'))
    expect(await lab.down()).toBe(true)
    expect(await processesOf(lab.names)).toEqual([])
  })

  it('runs once: a second is refused, and of two at once one comes up', async () => {
    const lab = await temporaryLab()
    const results = await Promise.allSettled([lab.up(labOptions(lab)), lab.up(labOptions(lab))])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const refused = results.flatMap(result => (result.status === 'rejected' ? [result.reason as MusterError] : []))
    expect(refused.map(({ code }) => code).join()).toMatch(/^LAB_(RUNNING|BUSY)$/)
    await expect(lab.up(labOptions(lab))).rejects.toMatchObject({
      code: 'LAB_RUNNING',
      message: `a lab runs in ${lab.dir} already`,
      hint: 'end it first: muster lab down',
    })
    expect((await ask(lab)).addresses).toContain('10.77.0.1/16')
  })

  it('has another beside it, with the same addresses and the same nodes', async () => {
    const [one, other] = [await temporaryLab(), await temporaryLab()]
    await Promise.all([one, other].map(lab => lab.up(labOptions(lab, { nodes: [NODE] }))))
    const [first, second] = [await ask(one), await ask(other)]
    expect(first.addresses).toEqual(expect.arrayContaining(['10.77.0.1/16']))
    expect(second.addresses).toEqual(expect.arrayContaining(['10.77.0.1/16']))
    expect(first.namespace).not.toBe(second.namespace)
    await one.down()
    expect(await ask(other)).toEqual(second)
    expect((await other.status()).nodes[0]?.power).toBe('on')
  })

  it('clears away what it made when the server does not start, except for the log', async () => {
    const lab = await temporaryLab()
    await expect(lab.up(withServer(lab, { env: { FAIL: '1' }, ready: answers }))).rejects.toMatchObject({
      code: 'LAB_FAILED',
      message: 'the server ended before it was ready (3)',
      details: ['no such site'],
      hint: `all it said is in ${lab.dir}/server.log`,
    })
    expect((await lab.status()).state).toBe('down')
    expect(await readFile(join(lab.dir, 'server.log'), 'utf8')).toBe('no such site\n')
  })

  it('tells whoever asks whether the server is ready that nobody waits any more', async () => {
    const lab = await temporaryLab()
    const told = Promise.withResolvers<void>()
    const ready = (_: string, signal: AbortSignal): Promise<never> => {
      signal.addEventListener('abort', () => told.resolve())
      return new Promise(() => {})
    }
    await expect(lab.up(withServer(lab, { env: { FAIL: '1' }, ready }))).rejects.toMatchObject({ code: 'LAB_FAILED' })
    await told.promise
  })

  it('clears away what it made when it is interrupted', async () => {
    const lab = await temporaryLab()
    const interrupted = new AbortController()
    const ready = async (): Promise<never> => {
      interrupted.abort(new Error('Ctrl-C'))
      return new Promise(() => {})
    }
    await expect(lab.up(withServer(lab, { ready }, { signal: interrupted.signal }))).rejects.toThrow('Ctrl-C')
    expect((await lab.status()).state).toBe('down')
  })

  it('says when its port is taken', async () => {
    const lab = await temporaryLab()
    const taken = createServer()
    await new Promise<void>(resolve => void taken.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void taken.close())
    const { port } = taken.address() as { port: number }
    await expect(lab.up(withServer(lab, { port }))).rejects.toMatchObject({
      code: 'ADDRESS_UNUSABLE',
      message: expect.stringContaining(`127.0.0.1:${port} cannot be used: `),
    })
  })
})

describe('the server of a lab', () => {
  it('can be ended, killed and started again at the same address; the machines go on', async () => {
    const lab = await temporaryLab()
    await lab.up(labOptions(lab, { nodes: [NODE] }))
    const [before, first] = [await lab.status(), await ask(lab)]
    for (const how of ['asked', 'killed'] as const) {
      await lab.stopServer(how)
      const { server, nodes } = await lab.status()
      expect(server).toEqual({ url: before.server?.url, log: before.server?.log, isRunning: false })
      expect(nodes).toEqual(before.nodes)
      await expect(fetch(server?.url ?? '')).rejects.toThrow('fetch failed')
      await lab.startServer(answers)
      expect((await ask(lab)).pid).not.toBe(first.pid)
    }
    await expect(lab.startServer()).rejects.toMatchObject({ code: 'LAB_RUNNING' })
  })
})

describe('the machines of a lab', () => {
  it('are switched, plugged in and disturbed by name', async () => {
    const lab = await temporaryLab()
    await lab.up(labOptions(lab, { nodes: [NODE], off: true }))
    const power = async () => (await lab.status()).nodes[0]?.power
    expect(await power()).toBe('off')
    await lab.plug('n001', 'down')
    const silence = await heard(lab)
    await lab.power(['n001'], 'on')
    expect(await power()).toBe('on')
    const { files } = await lab.machine('n001')
    // By then it has asked for an address.
    await says(files.consoleLog, /Configuring \(net0 [^)]+\)\.\.\./)
    expect(await heard(lab)).toBe(silence)
    await lab.impair('all', { loss: '100%' })
    await lab.plug('n001', 'up')
    const cut = (await readFile(files.consoleLog)).length
    await lab.power(['n001'], 'cycle')
    await says(files.consoleLog, /Configuring \(net0 [^)]+\)\.\.\./, cut)
    expect(await heard(lab)).toBe(silence)
    await lab.impair(['n001'], {})
    await expect.poll(() => heard(lab), { timeout: 240_000 }).toBeGreaterThan(silence)
    await lab.power(['n001'], 'off')
    expect(await power()).toBe('off')
  })

  it('are unknown by other names, and there only while the lab runs', async () => {
    const lab = await temporaryLab()
    await expect(lab.power(['n001'], 'on')).rejects.toMatchObject({
      code: 'LAB_NOT_RUNNING',
      message: `no lab runs in ${lab.dir}`,
      hint: 'start it with: muster lab up',
    })
    await lab.up(labOptions(lab, { nodes: [NODE], off: true }))
    await expect(lab.power(['n001', 'n999'], 'on')).rejects.toMatchObject({
      code: 'NODE_UNKNOWN',
      message: 'no machine of the lab is named n999',
      hint: 'list them with: muster lab status',
    })
    expect((await lab.status()).nodes[0]?.power).toBe('off')
    await expect(lab.machine('n999')).rejects.toMatchObject({ code: 'NODE_UNKNOWN' })
  })
})
