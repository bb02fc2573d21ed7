import { expect, test } from 'vitest'
import { startTestServer } from '../../src/api/testing.ts'
import { run } from '../../src/cli/testing.ts'
import { operator } from '../../src/control/testing.ts'
import { report } from '../../src/state/observed.ts'

const [OPEN, SECRET] = ['a'.repeat(64), 'b'.repeat(64)]
const list = (...lines: string[]): string =>
  ['muster-files 1', ...lines.map(line => line.replaceAll(' ', '\t')), 'end', ''].join('\n')
const WANTED = list(
  `file live 0644 root root ${OPEN} 5 - /etc/open`,
  `file boot 0400 munge munge ${SECRET} 6 - /etc/secret`,
  'link boot - - - - - - /etc/zone /usr/share/zone',
)
const EARLIER: Readonly<Record<string, string>> = {
  aaaaaaaaaaaaaaaa: WANTED,
  bbbbbbbbbbbbbbbb: list(
    `file live 0600 root root ${SECRET} 5 - /etc/open`,
    `file boot 0644 root root ${OPEN} 5 - /etc/old`,
  ),
}

async function world() {
  const server = await startTestServer({
    files: {
      about: () => ({
        list: {
          version: 'aaaaaaaaaaaaaaaa',
          text: Buffer.from(WANTED),
          contents: [
            { sha256: OPEN, bytes: Buffer.from('open\n'), isSecret: false },
            { sha256: SECRET, bytes: Buffer.from('canary'), isSecret: true },
          ],
        },
        failures: [
          { path: '/etc/open', source: 'files/open.j2', reason: 'files/open.j2: line 1: there is no x', isKept: true },
        ],
      }),
      earlier: version => EARLIER[version],
    },
  })
  await server.control.apply(operator)
  const muster = async (words: string): Promise<[status: number, ...lines: string[]]> => {
    const { status, stdout } = await run([...words.split(' '), '--server', server.socket])
    return [
      status,
      ...stdout
        .trimEnd()
        .split('\n')
        .map(line => line.trimEnd().replaceAll(/ {2,}/g, ' | ')),
    ]
  }
  const has = (value: string) =>
    report(server.store, 'n001', { config: { value } }, { actor: 'test' }, new Date('2026-03-01T12:00:00Z'))
  return { server, muster, has, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test('what the server has for a node is shown, secrets are not', async () => {
  await using it = await world()
  expect(await it.muster('files show n001')).toEqual([
    1,
    'PATH | KIND | OWNER | MODE | WHEN | SIZE',
    '/etc/open | file | root:root | 0644 | live | 5 B',
    '/etc/secret | file | munge:munge | 0400 | boot | holds a secret',
    '/etc/zone | → /usr/share/zone | boot',
    '/etc/open: files/open.j2: line 1: there is no x; the last good one stays',
  ])
  expect(await it.muster('files show n001 /etc/open')).toEqual([0, 'open'])
  expect(await it.muster('files show n001 /etc/secret')).toEqual([0, 'secret, 6 bytes'])
  expect(await it.muster('files show n001 /etc/zone')).toEqual([0, 'a link to /usr/share/zone'])
})

test('what a node has is compared with what it is to have', async () => {
  await using it = await world()
  expect(await it.muster('files diff n001')).toEqual([0, 'n001 has not said which files it has'])
  await it.has('bbbbbbbbbbbbbbbb')
  expect(await it.muster('files diff n001 --exit-code')).toEqual([
    1,
    'n001 has bbbbbbbbbbbbbbbb since 2026-03-01T12:00:00.000Z, and is to have aaaaaaaaaaaaaaaa',
    'PATH | WHAT',
    '- /etc/old | unwanted',
    '~ /etc/open | content, mode',
    '+ /etc/secret | missing',
    '+ /etc/zone | missing',
  ])
  await it.has('cccccccccccccccc')
  expect(await it.muster('files diff n001')).toEqual([
    0,
    'n001 has cccccccccccccccc since 2026-03-01T12:00:00.000Z, and is to have aaaaaaaaaaaaaaaa',
    'what it has was not remembered',
  ])
  await it.has('aaaaaaaaaaaaaaaa')
  expect(await it.muster('files diff n001 --exit-code')).toEqual([
    0,
    'n001 has the files it is to have (aaaaaaaaaaaaaaaa)',
  ])
})
