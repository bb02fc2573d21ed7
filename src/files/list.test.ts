import { describe, expect, it } from 'vitest'
import { type ListedFile, listText, parseList, versionOf } from './list.ts'

const SHA = 'a'.repeat(64)
const file = (path: string, more: object = {}): ListedFile => ({
  kind: 'file',
  path,
  when: 'boot',
  owner: 'root',
  group: 'root',
  mode: '0644',
  source: 'files/x',
  blob: '',
  sha256: SHA,
  size: 7,
  ...more,
})

const FILES: readonly ListedFile[] = [
  { kind: 'dir', path: '/etc/x', when: 'boot', owner: 'munge', group: '12', mode: '0700', source: 'files/x' },
  file('/etc/x/a b', { when: 'live', run: 'systemctl reload a' }),
  file('/etc/x/b', { when: 'live', run: 'systemctl reload b', mode: '0400' }),
  file('/etc/x/c', { when: 'live', run: 'systemctl reload a' }),
  { kind: 'link', path: '/etc/y', when: 'boot', target: '../a b' },
  { kind: 'absent', path: '/etc/z', when: 'live' },
]

const TEXT = `muster-files 1
run\t1\tsystemctl reload a
run\t2\tsystemctl reload b
dir\tboot\t0700\tmunge\t12\t-\t-\t-\t/etc/x
file\tlive\t0644\troot\troot\t${SHA}\t7\t1\t/etc/x/a b
file\tlive\t0400\troot\troot\t${SHA}\t7\t2\t/etc/x/b
file\tlive\t0644\troot\troot\t${SHA}\t7\t1\t/etc/x/c
link\tboot\t-\t-\t-\t-\t-\t-\t/etc/y\t../a b
absent\tlive\t-\t-\t-\t-\t-\t-\t/etc/z
end
`

describe('a list', () => {
  it('is text that a shell can read', () => {
    expect(listText(FILES)).toBe(TEXT)
    expect(listText([])).toBe('muster-files 1\nend\n')
    expect(versionOf(TEXT)).toBe('6a8817ba8cd1fa28')
  })

  it('can be read again', () => {
    expect(parseList(TEXT)).toEqual([
      { kind: 'dir', path: '/etc/x', when: 'boot', mode: '0700', owner: 'munge', group: '12' },
      {
        kind: 'file',
        path: '/etc/x/a b',
        when: 'live',
        mode: '0644',
        owner: 'root',
        group: 'root',
        sha256: SHA,
        size: 7,
        run: 'systemctl reload a',
      },
      {
        kind: 'file',
        path: '/etc/x/b',
        when: 'live',
        mode: '0400',
        owner: 'root',
        group: 'root',
        sha256: SHA,
        size: 7,
        run: 'systemctl reload b',
      },
      {
        kind: 'file',
        path: '/etc/x/c',
        when: 'live',
        mode: '0644',
        owner: 'root',
        group: 'root',
        sha256: SHA,
        size: 7,
        run: 'systemctl reload a',
      },
      { kind: 'link', path: '/etc/y', when: 'boot', target: '../a b' },
      { kind: 'absent', path: '/etc/z', when: 'live' },
    ])
  })

  it.for([
    ['nothing', ''],
    ['another version', TEXT.replace('muster-files 1', 'muster-files 2')],
    ['half of one', TEXT.slice(0, 200)],
    ['one that was cut at a line', TEXT.replace('end\n', '')],
    ['an unknown kind', TEXT.replace('dir\t', 'pipe\t')],
    ['a kind that is none', TEXT.replace('dir\t', 'constructor\t')],
    ['a column too few', TEXT.replace('\t7\t1\t', '\t7\t')],
    ['a mode that is none', TEXT.replace('0700', '0900')],
    ['a digest that is none', TEXT.replace(SHA, 'A'.repeat(64))],
    ['a path that is none', TEXT.replace('/etc/z', 'etc/z')],
    ['a link to nothing', TEXT.replace('\t../a b', '')],
    ['a run that nobody named', TEXT.replace('\t7\t2\t', '\t7\t3\t')],
  ])('is not %s', ([, text = '']) => {
    expect(parseList(text)).toBeUndefined()
  })
})
