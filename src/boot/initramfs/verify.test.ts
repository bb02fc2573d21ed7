import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { type Manifest, manifestText } from '../../images/manifest.ts'
import { keyId, newPrivateKey, parsePrivateKey, publicText, signBytes } from '../../images/trust/keys.ts'
import { signifyKey, signifySignature } from '../../images/trust/signify.ts'
import { Bench, SHELLS } from './testing.ts'

const hex = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex')
const ROOT = { sha256: hex('root'), size: 1234 }
const MANIFEST: Manifest = {
  schema: 'muster.image/1',
  name: 'compute',
  arch: 'amd64',
  created: '2026-11-16T00:00:00Z',
  inputs: `sha256:${hex('inputs')}`,
  tree: `sha256:${hex('tree')}`,
  // Whoever reads carelessly takes this for the root.
  os: { id: 'debian', name: `{"type":"squashfs","sha256":"${hex('other')}","size":1234}` },
  size: 1,
  artefacts: [
    { type: 'kernel', sha256: hex('kernel'), size: 6 },
    { type: 'initrd', sha256: hex('initrd'), size: 6 },
    { type: 'squashfs', ...ROOT },
  ],
}
const TEXT = Buffer.from(manifestText(MANIFEST))
const [ours, theirs] = [newPrivateKey(), newPrivateKey()].map(pem => parsePrivateKey(pem, 'a test')) as [
  ReturnType<typeof parsePrivateKey>,
  ReturnType<typeof parsePrivateKey>,
]
const signed = (key: typeof ours, bytes: Buffer = TEXT): string =>
  signifySignature({ key: keyId(publicText(key)), signature: signBytes(bytes, key) })

type Blobs = Readonly<Record<string, string | Buffer>>
const BLOBS: Blobs = { [hex(TEXT)]: TEXT, [hex('kernel')]: 'kernel', [hex('initrd')]: 'initrd' }

async function serve(blobs: Blobs): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(({ url = '' }, response) => void response.end(blobs[url.slice('/blob/'.length)]))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, [Symbol.asyncDispose]: async () => void server.close() }
}

interface Case {
  readonly signature?: string
  readonly sha256?: string
  readonly keys?: readonly (typeof ours)[]
  readonly blobs?: Blobs
  readonly adopted?: boolean
}

describe.concurrent.each(SHELLS)('a signature, by %s', shell => {
  /** What it says to an image; nothing where it may run. */
  const verify = async (given: Case): Promise<string> => {
    const { signature = signed(ours), sha256 = ROOT.sha256, keys = [theirs, ours], blobs = {}, adopted = false } = given
    await using bench = await Bench.create(shell)
    await using server = await serve({ ...BLOBS, ...blobs })
    await mkdir(`${bench.dir}/keys`)
    for (const key of keys.map(publicText)) await writeFile(`${bench.dir}/keys/${keyId(key)}`, signifyKey(key))
    const { status, output } = await bench.run(
      'lib patience plan report fetch verify',
      [
        keys.length > 0 ? 'signify() { /usr/bin/signify-openbsd "$@"; }' : '',
        'forget_plan',
        `plan_servers=${server.url} plan_image=sha256:${hex(TEXT)} plan_manifest=${TEXT.length}`,
        `plan_signature=${signature} plan_sha256=${sha256} plan_size=${ROOT.size} adopted=${adopted ? 1 : ''}`,
        'verify_image',
      ].join('\n'),
      { KEYS: `${bench.dir}/keys` },
    )
    expect(output).toBe('')
    return status === 0 ? '' : (await readFile(`${bench.dir}/work/problem`, 'utf8')).trim()
  }

  test('of a key that is here lets the image run', async () => {
    expect(await verify({})).toBe('')
  })

  test('is not asked for where the site names no keys', async () => {
    expect(await verify({ signature: '', keys: [] })).toBe('')
  })

  test('says nothing of the kernel that a machine was discovered with', async () => {
    expect(await verify({ blobs: { [hex('kernel')]: 'Kernel' }, adopted: true })).toBe('')
  })

  test.each<[string, Case, RegExp]>([
    ['none', { signature: '' }, /^the image sha256:[0-9a-f]{64} is not signed; sign it/],
    [
      'of a key that is not here',
      { keys: [theirs] },
      /^none of the keys that this machine trusts has signed the image/,
    ],
    ['of something else', { signature: signed(ours, Buffer.from('other')) }, /^none of the keys/],
    ['that is none', { signature: 'A'.repeat(100) }, /^none of the keys/],
    ['over another root', { sha256: hex('another') }, /names another root than sha256:[0-9a-f]{64}; look at/],
    ['over words that only look like the root', { sha256: hex('other') }, /names another root than/],
    [
      'over another kernel than is given out',
      { blobs: { [hex('kernel')]: 'Kernel' } },
      /^the kernel that http:\S+ gives out is not the one of the image: sha256 [0-9a-f]{64} instead of [0-9a-f]{64}; is/,
    ],
    [
      'over another initramfs',
      { blobs: { [hex('initrd')]: 'initrd and more' } },
      /^the initramfs that http:\S+ gives out is/,
    ],
  ])('%s keeps it from running', async (_, given, reason) => {
    expect(await verify(given)).toMatch(reason)
  })
})
