import { access, chmod, mkdir, readFile, readdir, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ImageStore, openImageStore } from './store.ts'
import { makeStore, wholeBlobs } from './testing.ts'

const HELLO = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const temporaries = (store: ImageStore): Promise<string[]> => readdir(join(store.dir, 'tmp'))
const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o7777).toString(8)
const textOf = async (store: ImageStore, sha256: string): Promise<string> => (await store.read(sha256)).toString('utf8')

async function* chunks(...parts: string[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield Buffer.from(part)
}

async function* broken(): AsyncGenerator<Buffer> {
  yield Buffer.from('hel')
  throw new Error('gone')
}

describe('a blob', () => {
  it('is a file named by its digest, for reading only, in a directory that is for nobody else', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    expect(await store.put('hello')).toEqual({ sha256: HELLO, size: 5 })
    expect(store.pathOf(HELLO)).toBe(join(dir, 'blobs/sha256/2c', HELLO))
    expect(await readFile(store.pathOf(HELLO), 'utf8')).toBe('hello')
    expect(await modeOf(store.pathOf(HELLO))).toBe('444')
    expect(await modeOf(dir)).toBe('700')
    expect(await temporaries(store)).toEqual([])
  })

  it('may be empty', async () => {
    await using temporary = await makeStore()
    expect(await temporary.store.put('')).toEqual({ sha256: EMPTY, size: 0 })
    expect(await textOf(temporary.store, EMPTY)).toBe('')
  })

  it('that is written twice is there once, and as if just written', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    await store.put('hello')
    await utimes(store.pathOf(HELLO), 1, 1)
    await store.put('hello')
    expect((await stat(store.pathOf(HELLO))).mtimeMs).toBeGreaterThan(Date.UTC(2020, 1))
    expect(await wholeBlobs(dir)).toEqual([HELLO])
    expect(await temporaries(store)).toEqual([])
  })

  it('that is written again is whole again, should it have been damaged', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    await store.put('hello')
    await damage(store.pathOf(HELLO), 'jello')
    await expect(store.read(HELLO)).rejects.toMatchObject({ code: 'IMAGE_DAMAGED' })
    await store.put('hello')
    expect(await textOf(store, HELLO)).toBe('hello')
  })

  it('is new when it is adopted, however old the file is', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const file = store.temporary()
    await writeFile(file, 'hello')
    await utimes(file, 1, 1)
    const { ino } = await stat(file)
    expect(await store.adopt(file)).toEqual({ sha256: HELLO, size: 5 })
    // The file itself, not a copy that would be visible before it is whole.
    expect((await stat(store.pathOf(HELLO))).ino).toBe(ino)
    expect((await stat(store.pathOf(HELLO))).mtimeMs).toBeGreaterThan(Date.UTC(2020, 1))
    await expect(access(file)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('is adopted under a digest that is known, without being read', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const file = store.temporary()
    await writeFile(file, 'hello')
    expect(await store.adopt(file, { sha256: EMPTY, size: 5 })).toEqual({ sha256: EMPTY, size: 5 })
    expect(await store.has(EMPTY)).toBe(true)
  })

  it('is not adopted when it has another length than it should', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const file = store.temporary()
    await writeFile(file, 'hello')
    await expect(store.adopt(file, { sha256: HELLO, size: 6 })).rejects.toMatchObject({
      code: 'DIGEST_MISMATCH',
      message: `${HELLO} has 6 bytes, not 5`,
    })
    expect(await store.has(HELLO)).toBe(false)
    expect(await temporaries(store)).toEqual([])
  })

  it('is not there when writing it failed', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    const failing = store.writeBlob(async file => {
      await writeFile(file, 'half of')
      throw new Error('the tool failed')
    })
    await expect(failing).rejects.toThrow('the tool failed')
    expect(await temporaries(store)).toEqual([])
    expect(await wholeBlobs(dir)).toEqual([])
  })

  it('that is not there is unknown', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    expect(await store.has(HELLO)).toBe(false)
    for (const asked of [store.read(HELLO), store.openBlob(HELLO)])
      await expect(asked).rejects.toMatchObject({ code: 'BLOB_UNKNOWN', message: `there is no blob ${HELLO}` })
  })

  it.for(['', 'hello', '../../../etc/passwd', `${HELLO}/..`, HELLO.toUpperCase(), `${HELLO}0`, `sha256:${HELLO}`])(
    'has no path when its digest is none: %j',
    async text => {
      await using temporary = await makeStore()
      expect(() => temporary.store.pathOf(text)).toThrow('is not a sha256 in hex')
    },
  )
})

describe('reading', () => {
  it('refuses what is larger than asked for', async () => {
    await using temporary = await makeStore()
    await temporary.store.put('hello')
    await expect(temporary.store.read(HELLO, 4)).rejects.toMatchObject({ code: 'IMAGE_DAMAGED' })
    expect((await temporary.store.read(HELLO, 5)).length).toBe(5)
  })

  it('of an open blob comes to its end though it is removed, and begins only if its length is right', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const { sha256 } = await store.put('x'.repeat(300_000))
    await expect(store.openBlob(sha256, 299_999)).rejects.toMatchObject({
      code: 'IMAGE_DAMAGED',
      message: `${sha256} has 300000 bytes, not 299999`,
    })
    const { handle, size } = await store.openBlob(sha256, 300_000)
    expect(size).toBe(300_000)
    await utimes(store.pathOf(sha256), 1, 1)
    await store.gc({ roots: { uses: new Map() } })
    expect(await store.has(sha256)).toBe(false)
    const parts = await handle.createReadStream().toArray()
    expect(Buffer.concat(parts as Buffer[]).length).toBe(300_000)
  })
})

describe('receiving', () => {
  it('makes a blob of what arrives if it has the digest', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    expect(await store.receive(HELLO, chunks('he', 'l', 'lo'), 5)).toEqual({ sha256: HELLO, size: 5 })
    expect(await textOf(store, HELLO)).toBe('hello')
  })

  it('stores nothing that has another', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    await expect(store.receive(HELLO, chunks('help'), 5)).rejects.toMatchObject({ code: 'DIGEST_MISMATCH' })
    expect(await wholeBlobs(dir)).toEqual([])
    expect(await temporaries(store)).toEqual([])
  })

  it('stops at the limit', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    let sent = 0
    const endless = async function* (): AsyncGenerator<Buffer> {
      for (;;) yield Buffer.alloc(10, String(sent++))
    }
    await expect(store.receive(HELLO, endless(), 95)).rejects.toMatchObject({ code: 'BODY_TOO_LARGE' })
    expect(sent).toBe(10)
    expect(await temporaries(store)).toEqual([])
  })

  it('leaves nothing of what breaks off', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    await expect(store.receive(HELLO, broken(), 5)).rejects.toThrow('gone')
    expect(await temporaries(store)).toEqual([])
  })
})

describe('what is missing', () => {
  it('is named once; the rest counts as just written', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    await store.put('hello')
    await utimes(store.pathOf(HELLO), 1, 1)
    expect(await store.missing([EMPTY, HELLO, EMPTY])).toEqual([EMPTY])
    expect((await stat(store.pathOf(HELLO))).mtimeMs).toBeGreaterThan(Date.UTC(2020, 1))
  })
})

describe('a download that broke off', () => {
  it('is taken up by the next who asks, and by one only', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const first = await store.partial(HELLO)
    await writeFile(first, 'hel')
    // Nobody takes it from a process that runs.
    await expect(access(await store.partial(HELLO))).rejects.toMatchObject({ code: 'ENOENT' })
    await store.keepPartial(first)
    const [second, third] = [await store.partial(HELLO), await store.partial(HELLO)]
    expect(await readFile(second, 'utf8')).toBe('hel')
    await expect(access(third)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(await store.partial(EMPTY)).not.toContain(HELLO)
  })

  it('is taken up also when its process was killed, or is of an earlier boot', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    for (const owner of ['4194305-77', `${process.pid}-1`]) {
      await writeFile(join(dir, 'tmp', `${owner}.00.${HELLO}`), 'hell')
      expect(await readFile(await store.partial(HELLO), 'utf8')).toBe('hell')
    }
  })

  it('of which there is nothing yet can be given up', async () => {
    await using temporary = await makeStore()
    await temporary.store.keepPartial(await temporary.store.partial(HELLO))
    expect(await temporaries(temporary.store)).toEqual([])
  })
})

describe('opening a store', () => {
  it('in a directory that is there takes it as it is', async () => {
    await using temporary = await makeStore()
    await temporary.store.put('hello')
    expect(await (await openImageStore(temporary.dir)).has(HELLO)).toBe(true)
  })

  it('makes the directories above', async () => {
    await using temporary = await makeStore()
    const store = await openImageStore(join(temporary.dir, 'a/b/c'))
    expect(await store.names()).toEqual([])
  })

  it('does not work where there is a file', async () => {
    await using temporary = await makeStore()
    await mkdir(join(temporary.dir, 'x'))
    await writeFile(join(temporary.dir, 'x/blobs'), '')
    await expect(openImageStore(join(temporary.dir, 'x'))).rejects.toMatchObject({
      code: 'FILE_UNWRITABLE',
      message: expect.stringContaining(`images cannot be kept in ${temporary.dir}/x: `) as unknown,
    })
  })
})

async function damage(file: string, text: string): Promise<void> {
  await chmod(file, 0o600)
  await writeFile(file, text)
}
