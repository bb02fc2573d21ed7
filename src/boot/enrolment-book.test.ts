import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { exec } from '../lib/exec.ts'
import { EnrolmentBook } from './enrolment-book.ts'

let dir: string
let file: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-book-'))
  file = join(dir, 'boot', 'enrolments.jsonl')
})
afterEach(() => rm(dir, { recursive: true }))

const granted = (digit: string, at = 1) => ({ boot: digit.repeat(32), claim: digit.repeat(64), at })

describe('the book of enrolments', () => {
  it('is readable by root only, and remembers', async () => {
    {
      await using book = await EnrolmentBook.open(file)
      expect(book.get('n1')).toBeUndefined()
      await book.put('n1', { granted: granted('a') })
      await book.put('n1', { revoked: 5 })
      await book.put('n2', { granted: granted('b') })
    }
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    await using book = await EnrolmentBook.open(file)
    expect(book.get('n1')).toEqual({ granted: granted('a'), revoked: 5 })
    expect(book.get('n2')).toEqual({ granted: granted('b') })
  })

  it('has on disk what a promise was resolved for, in the order it was said, however many at once', async () => {
    await using book = await EnrolmentBook.open(file)
    const names = Array.from({ length: 1000 }, (_, index) => `n${index}`)
    await Promise.all(names.map(name => book.put(name, { granted: granted('a') })))
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
    expect(lines.map(line => (JSON.parse(line) as { node: string }).node)).toEqual(names)
  })

  it('is written anew when it has become long', async () => {
    await using book = await EnrolmentBook.open(file)
    const many = Array.from({ length: 30_000 }, (_, index) => index)
    await Promise.all(many.map(at => book.put('n1', { granted: granted('a', at) })))
    await Promise.all(many.map(at => book.put(`m${at % 2}`, { granted: granted('b', at) })))
    expect((await readFile(file, 'utf8')).trimEnd().split('\n')).toHaveLength(3)
    await book.put('n2', { revoked: 3 })
    expect((await readFile(file, 'utf8')).trimEnd().split('\n')).toHaveLength(4)
  })

  it('is as it was before when the disk is full, and goes on when there is room again', async () => {
    const small = join(dir, 'small')
    await exec('mkdir', [small])
    await exec('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'muster-test', small])
    try {
      const on = join(small, 'book.jsonl')
      await using book = await EnrolmentBook.open(on)
      await book.put('n1', { granted: granted('a') })
      await exec('dd', ['if=/dev/zero', `of=${small}/filler`, 'bs=1024', 'count=64'], { allow: [1] })
      const long = Array.from({ length: 300 }, (_, index) => `n${index}`)
      const tries = await Promise.allSettled(long.map(node => book.put(node, { granted: granted('b') })))
      expect(new Set(tries.map(({ status }) => status))).toEqual(new Set(['rejected']))
      expect(book.get('n1')).toEqual({ granted: granted('a') })
      expect(book.get('n2')).toBeUndefined()
      await book.settled()
      await rm(join(small, 'filler'))
      await book.put('n2', { granted: granted('c') })
      expect((await readFile(on, 'utf8')).split('\n').map(line => line.slice(0, 12))).toEqual([
        '{"node":"n1"',
        '{"node":"n2"',
        '',
      ])
    } finally {
      await exec('umount', [small])
    }
  })
})
