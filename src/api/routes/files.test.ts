import { afterEach, describe, expect, it } from 'vitest'
import type { NodeFilesState } from '../../files/book.ts'
import { operator } from '../../control/testing.ts'
import { report } from '../../state/observed.ts'
import { type NodeFilesReply, ProblemReply } from '../schemas.ts'
import { type Reply, type TestServer, startTestServer } from '../testing.ts'

const [OPEN, SECRET] = ['a'.repeat(64), 'b'.repeat(64)]
const TEXT = `muster-files 1
run\t1\tsystemctl reload x
file\tlive\t0644\troot\troot\t${OPEN}\t5\t1\t/etc/open
file\tboot\t0400\tmunge\tmunge\t${SECRET}\t6\t-\t/etc/secret
link\tboot\t-\t-\t-\t-\t-\t-\t/etc/zone\t/usr/share/zone
end
`
const OLD = TEXT.replace('0400\tmunge', '0600\tmunge').replace(/link.*\n/, '')
const state: NodeFilesState = {
  list: {
    version: '0123456789abcdef',
    text: Buffer.from(TEXT),
    contents: [
      { sha256: OPEN, bytes: Buffer.from('open\n'), isSecret: false },
      { sha256: SECRET, bytes: Buffer.from('canary'), isSecret: true },
    ],
  },
  failures: [{ path: '/etc/open', source: 'files/open.j2', reason: 'line 1: there is no x', isKept: true }],
}

let server: TestServer
afterEach(() => server[Symbol.asyncDispose]())

async function start(): Promise<void> {
  server = await startTestServer({
    files: { about: () => state, earlier: version => (version === 'fedcba9876543210' ? OLD : undefined) },
  })
  await server.control.apply(operator)
}
const ask = (path = ''): Promise<Reply> => server.root('GET', `/api/v1/nodes/n001/files${path}`)
const has = (value: string): Promise<unknown> =>
  report(server.store, 'n001', { config: { value } }, { actor: 'test' }, new Date())

describe('the files of a node', () => {
  it('are listed with their versions; of a secret neither content nor digest', async () => {
    await start()
    const reply = await ask()
    expect(reply.body).toEqual({
      node: 'n001',
      version: '0123456789abcdef',
      has: null,
      differences: null,
      files: [
        {
          kind: 'file',
          path: '/etc/open',
          when: 'live',
          mode: '0644',
          owner: 'root',
          group: 'root',
          sha256: OPEN,
          size: 5,
          run: 'systemctl reload x',
        },
        {
          kind: 'file',
          path: '/etc/secret',
          when: 'boot',
          mode: '0400',
          owner: 'munge',
          group: 'munge',
          size: 6,
          secret: true,
        },
        { kind: 'link', path: '/etc/zone', when: 'boot', target: '/usr/share/zone' },
      ],
      problems: [{ path: '/etc/open', source: 'files/open.j2', reason: 'line 1: there is no x', kept: true }],
    })
  })

  it('have their content when one is asked for, unless it is secret', async () => {
    await start()
    const fileOf = async (path: string) => ((await ask(`?path=${path}`)).body as NodeFilesReply).files
    expect(await fileOf('/etc/open')).toMatchObject([{ path: '/etc/open', content: 'open\n' }])
    const secret = await fileOf('/etc/secret')
    expect(secret).toMatchObject([{ path: '/etc/secret', size: 6, secret: true }])
    expect(JSON.stringify(secret)).not.toMatch(/canary|bbbb/)
    const reply = await ask('?path=/etc/opne')
    expect(ProblemReply.parse(reply.body)).toMatchObject({
      code: 'PATH_UNKNOWN',
      message: 'n001 gets no /etc/opne — did you mean /etc/open?',
    })
  })

  it('are compared with those that the node said it has', async () => {
    await start()
    await has('fedcba9876543210')
    expect((await ask()).body).toMatchObject({
      has: { version: 'fedcba9876543210' },
      differences: [
        { path: '/etc/secret', change: 'different', what: ['mode'] },
        { path: '/etc/zone', change: 'missing', what: [] },
      ],
    })
  })

  it('cannot be compared with what nobody remembers', async () => {
    await start()
    await has('1111111111111111')
    expect((await ask()).body).toMatchObject({ has: { version: '1111111111111111' }, differences: null })
  })

  it('are none on a server that has none', async () => {
    server = await startTestServer()
    await server.control.apply(operator)
    expect((await ask()).body).toEqual({
      node: 'n001',
      version: null,
      has: null,
      differences: null,
      files: [],
      problems: [],
    })
  })
})
