import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { type AgeKey, decrypt, encrypt, generateKey, parseKeyFile } from '../lib/age.ts'
import { exec } from '../lib/exec.ts'
import { checkSecrets, encryptFor, rotation, storedSecrets } from './secrets.ts'
import type { Site } from './site.ts'
import {
  type Files,
  SMALL,
  failureOf,
  format,
  git,
  isolateGit,
  problemsOf,
  repositoryOf,
  siteOf,
  temporaryDir,
  valueOf,
} from './testing.ts'
import { openWorkspace } from './workspace.ts'

beforeAll(isolateGit)

const CLEAR = 'hunter2-correct-horse'

const siteFor = (...keys: AgeKey[]): Files => ({
  ...SMALL,
  'site.yaml': `site: demo\nsecrets:\n  recipients: [${keys.map(key => key.recipient).join(', ')}]\ndefaults:\n  boot: { image: base }\n`,
})

/** `key: !age |` with the encrypted text below it, indented. */
const block = (armored: string, indent = '    '): string => `!age |\n${armored.trimEnd().replaceAll(/^/gm, indent)}\n`

/** Stores a secret as `muster secret set` does. */
const store = async (dir: string, file: string, path: string[], text: string): Promise<unknown> =>
  (await openWorkspace(dir)).change(
    async site => new Map([[file, [{ op: 'set', path, value: await encryptFor(site, text), tag: '!age' }]]]),
    'Set a secret',
  )

const open = async (dir: string): Promise<Site> => (await openWorkspace(dir)).open()
const check = async (site: Site, ...keys: AgeKey[]): Promise<string[]> =>
  format(
    await checkSecrets(
      site,
      keys.map(key => key.identity),
    ),
  )

describe('a secret', () => {
  test('encrypted, found, checked, and given to the node as it is', async () => {
    const key = await generateKey()
    const dir = await repositoryOf(siteFor(key))
    await store(dir, 'nodes.yaml', ['n[1-3]', 'bmc', 'password'], CLEAR)
    const site = await open(dir)
    const [secret, ...others] = storedSecrets(site)
    expect(others).toEqual([])
    expect(secret).toMatchObject({ file: 'nodes.yaml', path: ['n[1-3]', 'bmc', 'password'], line: 3 })
    expect(await decrypt(secret?.armored ?? '', [key.identity])).toBe(CLEAR)
    expect(valueOf(site)['bmc']).toEqual({ password: { $secret: secret?.armored } })
    expect(await check(site, key)).toEqual([])
    expect(await check(site)).toEqual([])
  })

  test('is nowhere in clear: not in a file, not in anything git keeps', async () => {
    const key = await generateKey()
    const dir = await repositoryOf(siteFor(key))
    await store(dir, 'nodes.yaml', ['n[1-3]', 'bmc', 'password'], CLEAR)
    await store(dir, 'site.yaml', ['defaults', 'vars', 'key'], `${CLEAR}\nsecond line`)
    await store(dir, 'site.yaml', ['defaults', 'vars', 'key'], `${CLEAR} again`)
    const everything = [
      await git(dir, 'cat-file', '--batch-all-objects', '--batch', '--unordered'),
      await git(dir, 'log', '--all', '--patch', '--format=full'),
      await readFile(join(dir, 'nodes.yaml'), 'utf8'),
      await readFile(join(dir, 'site.yaml'), 'utf8'),
    ].join('\n')
    expect(everything).toContain('BEGIN AGE ENCRYPTED FILE')
    for (const word of [CLEAR, Buffer.from(CLEAR).toString('base64').slice(0, 16), key.identity])
      expect(everything).not.toContain(word)
  })

  test.each(['', ' ', 'a', `tab\t"quotes" 'and' \\ {{ braces }}`, 'two\nlines\n', 'Zürich 🗝️', 'x'.repeat(100_000)])(
    'any text survives: %j',
    async text => {
      const key = await generateKey()
      const dir = await repositoryOf(siteFor(key))
      await store(dir, 'site.yaml', ['defaults', 'vars', 'key'], text)
      const [secret] = storedSecrets(await open(dir))
      expect(await decrypt(secret?.armored ?? '', [key.identity])).toBe(text)
    },
  )

  test('for several recipients: each can open it alone', async () => {
    const keys = [await generateKey(), await generateKey()]
    const site = await siteOf(siteFor(...keys))
    const armored = await encryptFor(site, CLEAR)
    for (const key of keys) expect(await decrypt(armored, [key.identity])).toBe(CLEAR)
  })

  test('encrypted twice reads differently', async () => {
    const site = await siteOf(siteFor(await generateKey()))
    expect(await encryptFor(site, CLEAR)).not.toBe(await encryptFor(site, CLEAR))
  })

  test('needs a recipient', async () => {
    const site = await siteOf()
    expect(await failureOf(() => encryptFor(site, CLEAR))).toBe(
      'SECRET_KEY_MISSING: the site names no recipients for its secrets (site.yaml: secrets.recipients)',
    )
  })

  test('recipients+ says the same as recipients, or is a mistake; it is not passed over', async () => {
    const { recipient } = await generateKey()
    const files = { 'site.yaml': `site: demo\nsecrets: { recipients+: [${recipient}] }\n` }
    const { recipients } = await siteOf(files)
    expect(recipients.length + (await problemsOf(files)).length).toBeGreaterThan(0)
  })
})

describe('checkSecrets', () => {
  test.each<[string, string, string]>([
    ['no age at all', '!age hunter2', 'is not an age-encrypted text'],
    ['nothing', '!age ""', 'is not an age-encrypted text'],
    [
      'the right frame around something else',
      block(
        `-----BEGIN AGE ENCRYPTED FILE-----\n${Buffer.from('something else').toString('base64')}\n-----END AGE ENCRYPTED FILE-----`,
      ),
      'is not encrypted with age',
    ],
  ])('without a key: %s', async (_, secret, message) => {
    const site = await siteOf({ 'groups/g.yaml': `# a group\nvars:\n  key: ${secret}\n` })
    expect(await check(site)).toEqual([`groups/g.yaml:3:13: vars.key: ${message}`])
  })

  test('cut short', async () => {
    const key = await generateKey()
    const armored = await encrypt(CLEAR, [key.recipient])
    const lines = armored.trimEnd().split('\n')
    const cut = [...lines.slice(0, -2), ...lines.slice(-1)].join('\n')
    const site = await siteOf({ 'groups/g.yaml': `vars:\n  key: ${block(cut)}` })
    expect(await check(site, key)).toEqual(['groups/g.yaml:2:13: vars.key: cannot be decrypted with this key'])
  })

  test('with the wrong key: every one of them, where it stands, and not a word of it', async () => {
    const [right, wrong] = [await generateKey(), await generateKey()]
    const armored = await encrypt(CLEAR, [right.recipient])
    const site = await siteOf({
      ...siteFor(right),
      'groups/g.yaml': `vars:\n  key: ${block(armored)}`,
      'nodes.yaml': `n1:\n  vars:\n    list:\n    - plain\n    - ${block(armored, '      ')}`,
    })
    expect(await check(site, right)).toEqual([])
    expect(await check(site, wrong, right)).toEqual([])
    expect(await check(site, wrong)).toEqual([
      'groups/g.yaml:2:13: vars.key: cannot be decrypted with this key',
      'nodes.yaml:5:12: n1.vars.list.1: cannot be decrypted with this key',
    ])
  })
})

/** A site with two secrets for the old key, that now names only the new one. */
async function rotated(): Promise<{ dir: string; old: AgeKey; fresh: AgeKey }> {
  const [old, fresh] = [await generateKey(), await generateKey()]
  const dir = await repositoryOf(siteFor(old))
  await store(dir, 'nodes.yaml', ['n[1-3]', 'bmc', 'password'], CLEAR)
  await store(dir, 'site.yaml', ['defaults', 'vars', 'key'], 'another')
  await writeFile(
    join(dir, 'site.yaml'),
    (await readFile(join(dir, 'site.yaml'), 'utf8')).replace(old.recipient, fresh.recipient),
  )
  await git(dir, 'commit', '--quiet', '--all', '-m', 'new recipient')
  return { dir, old, fresh }
}

describe('rotation', () => {
  test('encrypts every secret anew for the recipients the site names now', async () => {
    const { dir, old, fresh } = await rotated()
    expect(await check(await open(dir), fresh)).toHaveLength(2)
    const { files } = await (await openWorkspace(dir)).change(site => rotation(site, [old.identity]), 'Rotate')
    const site = await open(dir)
    expect(files.sort()).toEqual(['nodes.yaml', 'site.yaml'])
    expect(await check(site, fresh)).toEqual([])
    expect(await check(site, old)).toHaveLength(2)
    const texts = await Promise.all(storedSecrets(site).map(({ armored }) => decrypt(armored, [fresh.identity])))
    expect(texts.sort()).toEqual(['another', CLEAR])
  })

  test('changes nothing but the secrets', async () => {
    const { dir, old } = await rotated()
    const rest = async (): Promise<string> =>
      (await readFile(join(dir, 'site.yaml'), 'utf8')).replace(/-----BEGIN[^]*?END AGE ENCRYPTED FILE-----/, 'SECRET')
    const before = await rest()
    await (await openWorkspace(dir)).change(site => rotation(site, [old.identity]), 'Rotate')
    expect(await rest()).toBe(before)
  })

  test('with a key that opens none of them changes nothing, and says which it could not', async () => {
    const { dir, fresh } = await rotated()
    const head = await git(dir, 'rev-parse', 'HEAD')
    const workspace = await openWorkspace(dir)
    expect(await failureOf(() => workspace.change(site => rotation(site, [fresh.identity]), 'Rotate'))).toBe(
      'SECRET_UNDECRYPTABLE: nodes.yaml:3: n[1-3].bmc.password: cannot be decrypted with this key',
    )
    expect(await git(dir, 'rev-parse', 'HEAD')).toBe(head)
    expect(await git(dir, 'status', '--porcelain')).toBe('')
  })

  test('a secret in a list is refused: it could not be told where it stands', async () => {
    const key = await generateKey()
    const armored = await encrypt(CLEAR, [key.recipient])
    const files = {
      ...siteFor(key),
      'nodes.yaml': `n[1-3]:\n  vars:\n    keys:\n    - plain\n    - ${block(armored, '      ')}`,
    }
    expect(await problemsOf(files)).toEqual([
      'nodes.yaml:5:12: n[1-3].vars.keys: a secret cannot stand in a list: give it a key of its own',
    ])
  })

  test('of a site without secrets is no edit', async () => {
    expect((await rotation(await siteOf(), [])).size).toBe(0)
  })
})

const keyFile = async (): Promise<{ file: string; key: AgeKey }> => {
  const file = join(await temporaryDir(), 'key')
  await exec('age-keygen', ['-o', file])
  const [identity = ''] = parseKeyFile(await readFile(file, 'utf8'))
  const recipient = (await exec('age-keygen', ['-y', file])).stdout.toString().trim()
  return { file, key: { identity, recipient } }
}

describe('the age program', () => {
  test('opens what we encrypt, as it stands in the file', async () => {
    const { file, key } = await keyFile()
    const dir = await repositoryOf(siteFor(key))
    await store(dir, 'site.yaml', ['defaults', 'vars', 'key'], `${CLEAR}\n`)
    const text = await readFile(join(dir, 'site.yaml'), 'utf8')
    const armored = /-----BEGIN[^]*END AGE ENCRYPTED FILE-----/.exec(text)?.[0].replaceAll(/^ +/gm, '') ?? ''
    const { stdout } = await exec('age', ['--decrypt', '--identity', file], { input: `${armored}\n` })
    expect(stdout.toString()).toBe(`${CLEAR}\n`)
  })

  test('encrypts what we open', async () => {
    const { key } = await keyFile()
    const { stdout } = await exec('age', ['--encrypt', '--armor', '--recipient', key.recipient], { input: CLEAR })
    const site = await siteOf({ ...siteFor(key), 'groups/g.yaml': `vars:\n  key: ${block(stdout.toString())}` })
    expect(await check(site, key)).toEqual([])
    const [secret] = storedSecrets(site)
    expect(await decrypt(secret?.armored ?? '', [key.identity])).toBe(CLEAR)
  })

  test('and we agree on keys', async () => {
    const { identity, recipient } = await generateKey()
    const file = join(await temporaryDir(), 'key')
    await writeFile(file, `# public key: ${recipient}\n${identity}\n`)
    expect((await exec('age-keygen', ['-y', file])).stdout.toString()).toBe(`${recipient}\n`)
    expect(parseKeyFile(await readFile(file, 'utf8'))).toEqual([identity])
  })
})
