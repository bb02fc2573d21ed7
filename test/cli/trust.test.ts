import { createHash } from 'node:crypto'
import { readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { type Lab, fromJson, startLab } from './testing.ts'

let lab: Lab
beforeAll(async () => {
  lab = await startLab()
  await lab.muster('site apply --yes')
})
afterAll(() => lab[Symbol.asyncDispose]())

interface Shown {
  readonly sha256: string
  readonly authority: { readonly fingerprint: string }
  readonly server?: { readonly fingerprint: string; readonly hosts: readonly string[] }
}
const shown = async (words = 'ca show'): Promise<Shown> =>
  fromJson((await lab.muster(`${words} --json`)).stdout) as Shown

describe('the authority of a server', () => {
  it('is made when it starts, exported as openssl reads it, and shown by its fingerprint', async () => {
    const file = join(lab.dir, 'exported.pem')
    const { sha256, authority } = await shown()
    expect(await lab.muster(`ca export ${file}`)).toMatchObject({ status: 0, stdout: `${file}  sha256 ${sha256}\n` })
    expect(
      createHash('sha256')
        .update(await readFile(file))
        .digest('hex'),
    ).toBe(sha256)
    const read = await exec('openssl', ['x509', '-in', file, '-noout', '-fingerprint', '-sha256'])
    expect(read.stdout.toString()).toBe(`sha256 Fingerprint=${authority.fingerprint}\n`)
    expect(await lab.muster('ca export')).toMatchObject({ stdout: await readFile(file, 'utf8') })
    expect((await lab.muster('ca show')).stdout).toContain(authority.fingerprint)
  })

  it('keeps its keys to itself: readable by root, in no backup', async () => {
    const data = await findCa(lab.dir)
    const key = await readFile(join(data, 'ca.key'), 'utf8')
    expect((await stat(join(data, 'ca.key'))).mode & 0o777).toBe(0o600)
    const backup = join(lab.dir, 'backup.db')
    expect(await lab.muster(`backup ${backup}`)).toMatchObject({ status: 0 })
    const saved = await readFile(backup)
    expect(saved.includes(key.split('\n')[5] ?? key)).toBe(false)
    expect(saved.includes(await readFile(join(data, 'node.key')))).toBe(false)
  })

  it('gives the server a new certificate when it is told to, and it is known who said so', async () => {
    const first = await shown('ca renew')
    const second = await shown('ca renew')
    expect(second.authority).toEqual(first.authority)
    expect(second.server?.fingerprint).not.toBe(first.server?.fingerprint)
    expect(second.server?.hosts).toContain('127.0.0.1')
    expect((await lab.muster('audit')).stdout).toContain('ca.renewed')
  })

  it('refuses to write where it cannot', async () => {
    expect(await lab.muster('ca export /nonexistent/ca.pem')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('error: /nonexistent/ca.pem cannot be written') as string,
    })
  })
})

describe('muster node revoke', () => {
  it('takes node sets, and is an event', async () => {
    expect(await lab.muster('node revoke n[001-002]')).toMatchObject({
      status: 0,
      stdout: 'n[001-002]: 2 nodes revoked until the next boot\n',
    })
    expect(fromJson((await lab.muster('node revoke n001 --json')).stdout)).toEqual({ revoked: 'n001', count: 1 })
    const events = fromJson((await lab.muster('events --kind node.revoked --json')).stdout) as { nodes: string }[]
    expect(events.map(({ nodes }) => nodes).toSorted()).toEqual(['n001', 'n001', 'n002'])
  })

  it('knows no node that is none', async () => {
    expect(await lab.muster('node revoke n999')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('error: no such node: n999') as string,
    })
  })
})

async function findCa(dir: string): Promise<string> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true })
  return entries.find(({ name }) => name === 'ca.key')?.parentPath ?? ''
}
