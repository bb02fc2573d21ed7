import { createHash } from 'node:crypto'
import { copyFile, readFile, readdir, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AppliedReply, GenerationList, NodePage } from '../../src/api/schemas.ts'
import type { Generation } from '../../src/control/generations.ts'
import { type TestSite, makeSite } from '../../src/control/testing.ts'
import { type Folder, type Muster, folder, muster, startMuster } from './muster.ts'

let site: TestSite
let place: Folder
let number = 0
beforeAll(async () => {
  site = await makeSite()
  place = await folder()
})
afterAll(async () => {
  await place[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

const at = (name: string): string => join(place.path, name)

async function applyNext(server: Muster): Promise<Generation> {
  await site.write('groups/compute.yaml', `vars: { number: ${++number} }\n`)
  await site.commit(`change ${number}`)
  const reply = await server.root('POST', '/api/v1/site/apply', {})
  expect(reply.status).toBe(200)
  return AppliedReply.parse(reply.body).generation
}

const generationsOf = async (server: Muster): Promise<Generation[]> =>
  GenerationList.parse((await server.root('GET', '/api/v1/site/generations')).body).items

const tokenOf = async (server: Muster, name: string): Promise<string> =>
  (await server.cli('token', 'create', name, '--role', 'operator')).stdout.trim()

/** Every file of a directory with the hash of its content. */
async function fingerprint(dir: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const name of (await readdir(dir)).sort()) {
    const file = join(dir, name)
    if ((await stat(file)).isFile())
      found[name] = createHash('sha256')
        .update(await readFile(file))
        .digest('hex')
  }
  return found
}

describe('a backup', () => {
  it('made while the site is applied comes back whole in another place: generations, nodes, tokens', async () => {
    let before: Generation[] = []
    let after: Generation[] = []
    let token = ''
    {
      await using server = await startMuster({ site: site.dir, data: at('original') })
      token = await tokenOf(server, 'kept')
      for (let times = 0; times < 3; times++) await applyNext(server)
      before = await generationsOf(server)

      const applying = new AbortController()
      const work = (async () => {
        while (!applying.signal.aborted) await applyNext(server)
      })()
      for (const name of ['one.db', 'two.db', 'three.db']) {
        const saved = await server.cli('backup', at(name))
        expect(saved).toMatchObject({ code: 0, stderr: '' })
        expect(((await stat(at(name))).mode & 0o777).toString(8)).toBe('600')
      }
      applying.abort()
      await work
      after = await generationsOf(server)
      expect(after.length).toBeGreaterThan(before.length)
      expect(await server.end('SIGTERM')).toMatchObject({ code: 0 })
    }
    expect(await readFile(at('three.db'), 'latin1')).not.toContain(token.slice('muster_'.length + 13))

    const restored = await muster(['restore', at('three.db'), '--data', at('fresh'), '--yes'])
    expect(restored).toMatchObject({ code: 0, stderr: '' })
    await using server = await startMuster({ site: site.dir, data: at('fresh') })
    const found = await generationsOf(server)
    // What had been acknowledged before the backup began is in it, and nothing that the original did not have.
    expect(found.slice(-before.length)).toEqual(before)
    expect(after.slice(-found.length)).toEqual(found)
    const reply = await server.ask('GET', '/api/v1/nodes', { token })
    expect(reply.status).toBe(200)
    expect(NodePage.parse(reply.body).items.map(item => item.name)).toEqual(['n001', 'n002', 'n003', 'n004'])

    const next = await applyNext(server)
    expect(next.number).toBe(found.length + 1)
    await expect(site.git('rev-parse', `refs/muster/generation-${next.number}`)).resolves.toBe(next.commit)
  })

  it('is not restored while the server runs', async () => {
    const data = at('busy')
    await using server = await startMuster({ site: site.dir, data })
    const token = await tokenOf(server, 'busy')
    await applyNext(server)
    expect((await server.cli('backup', at('busy.db'))).code).toBe(0)
    const now = await applyNext(server)
    const refused = await muster(['restore', at('busy.db'), '--data', data, '--yes'])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toBe(
      `error: ${join(data, 'state.db')}: is in use\nhint:  another muster uses this data directory; stop it first\n`,
    )
    expect((await generationsOf(server))[0]).toEqual(now)
    expect((await server.ask('GET', '/api/v1/status', { token })).status).toBe(200)
    expect((await applyNext(server)).number).toBe(now.number + 1)
  })

  it('replaces what was there, which is kept', async () => {
    const data = at('replaced')
    {
      await using server = await startMuster({ site: site.dir, data })
      await applyNext(server)
      expect((await server.cli('backup', at('replaced.db'))).code).toBe(0)
      await applyNext(server)
      await server.end('SIGKILL')
    }
    expect((await muster(['restore', at('replaced.db'), '--data', data, '--yes'])).code).toBe(0)
    expect(await readdir(data)).toContain('state.db.before-restore')
    {
      await using server = await startMuster({ site: site.dir, data })
      expect(await generationsOf(server)).toHaveLength(1)
    }
    await copyFile(join(data, 'state.db.before-restore'), at('kept.db'))
    expect((await muster(['restore', at('kept.db'), '--data', data, '--yes'])).code).toBe(0)
    await using server = await startMuster({ site: site.dir, data })
    expect(await generationsOf(server)).toHaveLength(2)
  })

  it('that is damaged, or none, is refused and nothing changes', async () => {
    const data = at('unharmed')
    {
      await using server = await startMuster({ site: site.dir, data })
      await applyNext(server)
      expect((await server.cli('backup', at('good.db'))).code).toBe(0)
      await server.end('SIGTERM')
    }
    const good = await readFile(at('good.db'))
    await copyFile(at('good.db'), at('cut.db'))
    await truncate(at('cut.db'), good.length - 8192)
    const scratched = Buffer.from(good)
    for (let page = 1; page * 8192 < good.length; page++) scratched.fill(0xa5, page * 8192, page * 8192 + 64)
    await writeFile(at('scratched.db'), scratched)
    await writeFile(at('text.db'), 'this is no backup\n'.repeat(1000))
    await writeFile(at('empty.db'), '')

    const before = await fingerprint(data)
    const files = ['cut.db', 'scratched.db', 'text.db', 'empty.db', 'missing.db']
    for (const name of files) {
      const refused = await muster(['restore', at(name), '--data', data, '--yes'])
      expect({ name, code: refused.code, stderr: refused.stderr }).toEqual({
        name,
        code: 1,
        stderr: expect.stringMatching(
          new RegExp(`^error: ${at(name)}: [^]+\nhint:  choose a file made by: muster backup\n$`),
        ) as unknown,
      })
      expect({ name, ...(await fingerprint(data)) }).toEqual({ name, ...before })
    }
    // Nor is there a state where there was none.
    expect((await muster(['restore', at('scratched.db'), '--data', at('nothing'), '--yes'])).code).toBe(1)
    expect((await readdir(at('nothing'))).filter(name => !name.endsWith('.lock'))).toEqual([])

    await using server = await startMuster({ site: site.dir, data })
    expect(await generationsOf(server)).toHaveLength(1)
  })

  it('asks first, and does not go on where nobody can answer', async () => {
    const refused = await muster(['restore', at('good.db'), '--data', at('unharmed')])
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain('--yes')
  })
})
