import { join } from 'node:path'
import { pino } from 'pino'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { encrypt, generateKey } from '../lib/age.ts'
import { openRepository } from '../site/git.ts'
import { type Files, SMALL, commitAll, isolateGit, repositoryOf, temporaryDir, writeFiles } from '../site/testing.ts'
import { openSqliteStore } from '../state/sqlite.ts'
import type { Store } from '../state/store.ts'
import { FileBook } from './book.ts'

beforeAll(isolateGit)

interface World {
  readonly book: FileBook
  readonly store: Store
  readonly log: string[]
  /** Makes the site this, and applies it. */
  readonly apply: (files: Files) => Promise<void>
  /** What is in force is something else: a tree, or what was never one. */
  readonly force: (tree: string | undefined) => Promise<void>
}

async function world(files: Files, identities: readonly string[] = []): Promise<World> {
  const dir = await repositoryOf({ ...SMALL, ...files })
  const store = await openSqliteStore(join(await temporaryDir(), 'state.db'))
  const log: string[] = []
  let tree: string | undefined = 'HEAD'
  const book = await FileBook.start({
    store,
    logger: pino({ base: null, timestamp: false }, { write: (line: string) => void log.push(line) }),
    repo: await openRepository(dir),
    tree: () => Promise.resolve(tree),
    identities,
  })
  onTestFinished(async () => {
    await book[Symbol.asyncDispose]()
    await store.close()
  })
  return {
    book,
    store,
    log,
    apply: async changed => {
      await writeFiles(dir, changed)
      tree = await commitAll(dir)
      await store.commit([], [{ kind: 'site.applied', actor: 'test' }])
    },
    force: async forced => {
      tree = forced
      await book.refresh()
    },
  }
}

const SITE = {
  'nodes.yaml':
    'n1: { files: { /etc/a: a.j2 } }\nn2: { files: { /etc/b: { source: b, when: live, then: systemctl reload b } } }\nn3:\n',
  'files/a.j2': 'a of {{ name }}\n',
  'files/b': 'b\n',
}

const textOf = (book: FileBook, node: string): string | undefined => book.list(node)?.text.toString()
const digestIn = (text: string | undefined): string => /[0-9a-f]{64}/.exec(text ?? '')?.[0] ?? ''
const firstOf = (book: FileBook, node: string): string | undefined =>
  book.content(node, digestIn(textOf(book, node)))?.toString()
const failuresIn = async (store: Store): Promise<unknown[]> =>
  (await store.events())
    .filter(({ kind }) => kind === 'files.failed')
    .map(({ nodes, data }) => ({ nodes, ...(data as object) }))

describe('a book of files', () => {
  it('has the list and the contents of each node', async () => {
    const { book } = await world(SITE)
    const b = '0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f'
    expect(textOf(book, 'n2')).toBe(
      `muster-files 1\nrun\t1\tsystemctl reload b\nfile\tlive\t0644\troot\troot\t${b}\t2\t1\t/etc/b\nend\n`,
    )
    expect(book.list('n2')?.version).toMatch(/^[0-9a-f]{16}$/)
    expect(book.content('n2', b)?.toString()).toBe('b\n')
    expect(firstOf(book, 'n1')).toBe('a of n1\n')
  })

  it('gives a node nothing of another', async () => {
    const { book } = await world(SITE)
    expect(book.content('n1', digestIn(textOf(book, 'n2')))).toBeUndefined()
    expect(book.content('n3', digestIn(textOf(book, 'n2')))).toBeUndefined()
    expect(book.content('nobody', digestIn(textOf(book, 'n2')))).toBeUndefined()
    expect([book.list('n3'), book.list('nobody')]).toEqual([undefined, undefined])
  })

  it('follows what is applied', async () => {
    const { book, apply } = await world(SITE)
    const before = book.list('n2')
    const old = { version: book.list('n1')?.version ?? '', text: textOf(book, 'n1') }
    await apply({ 'files/a.j2': 'new\n' })
    await vi.waitFor(() => expect(firstOf(book, 'n1')).toBe('new\n'), 30_000)
    expect(book.list('n2')).toBe(before)
    expect(book.earlier(before?.version ?? '')).toBe(before?.text.toString())
    await vi.waitFor(() => expect(book.earlier(old.version)).toBe(old.text), 30_000)
    expect(book.earlier('0123456789abcdef')).toBeUndefined()
  })

  it('is empty when no node gets any file, and full again', async () => {
    const { book, force } = await world(SITE)
    await force(undefined)
    expect(book.list('n1')).toBeUndefined()
    await force('HEAD')
    expect(firstOf(book, 'n1')).toBe('a of n1\n')
  })

  it('stays as it is when nothing can be read, and says so', async () => {
    const { book, log, force } = await world(SITE)
    await force('0000000000000000000000000000000000000000')
    expect(log.join('')).toContain('files of nodes stay as they are')
    expect(firstOf(book, 'n1')).toBe('a of n1\n')
    await force('HEAD')
  })
})

describe('a file that cannot be rendered', () => {
  it('stays as it was, and there is an event of it, once', async () => {
    const { book, store, apply } = await world(SITE)
    await apply({ 'files/a.j2': 'new {{ nobody }}\n' })
    const failed = {
      nodes: 'n1',
      path: '/etc/a',
      source: 'files/a.j2',
      reason: 'files/a.j2: line 1: there is no nobody',
      kept: true,
    }
    await vi.waitFor(async () => expect(await failuresIn(store)).toEqual([failed]), 30_000)
    expect(firstOf(book, 'n1')).toBe('a of n1\n')
    expect(book.about('n1').failures).toEqual([
      { path: failed.path, source: failed.source, reason: failed.reason, isKept: true },
    ])
    await apply({ 'files/b': 'new b\n' })
    await vi.waitFor(() => expect(firstOf(book, 'n2')).toBe('new b\n'), 30_000)
    expect(await failuresIn(store)).toEqual([failed])
  })
})

describe('secrets', () => {
  const CANARY = 'canary-4711'
  const withSecret = async (template: string): Promise<{ files: Files; identity: string }> => {
    const { identity, recipient } = await generateKey()
    const armored = (await encrypt(CANARY, [recipient])).replaceAll('\n', '\n      ')
    return {
      identity,
      files: {
        'site.yaml': `${SMALL['site.yaml']}  vars:\n    key: !age |\n      ${armored}\n`,
        'nodes.yaml': 'n1: { files: { /etc/key: key.j2 } }\n',
        'files/key.j2': template,
      },
    }
  }

  it('are opened for the node, and known as such', async () => {
    const { files, identity } = await withSecret('{{ vars.key }}\n')
    const { book } = await world(files, [identity])
    expect(firstOf(book, 'n1')).toBe(`${CANARY}\n`)
    expect(book.about('n1').list?.contents.map(({ isSecret }) => isSecret)).toEqual([true])
  })

  it('without a key are missing, and that is said', async () => {
    const { files } = await withSecret('{{ vars.key }}\n')
    const { book, store } = await world(files)
    expect(book.list('n1')).toBeUndefined()
    expect(await failuresIn(store)).toMatchObject([
      { reason: 'files/key.j2: it holds a secret, and the server has no key to open it (--key)', kept: false },
    ])
  })

  it('stand in no event and in no log, whatever goes wrong', async () => {
    const { files, identity } = await withSecret('{{ vars.key | ip_add(1) }}\n')
    const { store, log } = await world(files, [identity])
    expect(await failuresIn(store)).toHaveLength(1)
    expect(JSON.stringify([await store.events(), log])).not.toContain(CANARY)
  })
})
