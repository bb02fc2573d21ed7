import { mkdir, mkdtempDisposable, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { labNames, portName, realDirectory, uuidOf } from './names.ts'

describe('the names of a lab', () => {
  it('follow from its directory', () => {
    expect(labNames('/srv/lab')).toEqual({
      id: '8f527650',
      head: 'muster-8f527650-head',
      switch: 'muster-8f527650-switch',
      run: '/run/muster-lab-8f527650',
    })
    expect(labNames('/srv/lab2').id).not.toBe('8f527650')
  })

  it('are the same by whatever path one comes, also before the directory exists', async () => {
    await using temporary = await mkdtempDisposable(join(tmpdir(), 'muster-names-'))
    const real = await realDirectory(temporary.path)
    await mkdir(join(real, 'a'))
    await symlink('a', join(real, 'link'))
    expect(await realDirectory(join(real, 'link', 'not', 'yet'))).toBe(join(real, 'a', 'not', 'yet'))
    expect(await realDirectory(join(real, 'a', '..', 'link'))).toBe(join(real, 'a'))
  })
})

describe('the port of a node', () => {
  test.each(['n001', 'rack1-n05', 'a.b', '123456789012345'])('%s is named after it', name => {
    expect(portName(name)).toBe(name)
  })

  test.each([
    ['1234567890123456', '_7a51d064a1a2'],
    ['lo', '_9294ab38039f'],
    ['all', '_5ef5ef0364b6'],
    ['_bridge', '_9ed239d14323'],
  ])('%s, which no interface may be called, is %s', (name, port) => {
    expect(portName(name)).toBe(port)
  })
})

test('a machine keeps its UUID', () => {
  expect(uuidOf('52:54:00:77:00:01')).toBe('63bb50f0-c4d5-8bd4-a36f-6ed7abb57735')
})
