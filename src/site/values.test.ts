import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { EnvName, FileMode, FileTarget, NAME, Name, PackageName, UserName } from './values.ts'

interface Spec {
  readonly schema: z.ZodType
  readonly right: readonly string[]
  readonly wrong: readonly unknown[]
  readonly words: string
}

const specs: Readonly<Record<string, Spec>> = {
  'names of groups, images, modules': {
    schema: Name,
    right: ['a', '7', 'gpu-a100', 'r2_n7', 'a'.repeat(63)],
    wrong: ['', 'GPU', 'a b', '-a', 'a-', '_a', 'a_', 'a.b', 'a/b', '..', 'é', 'a\n', 'a'.repeat(64)],
    words: 'is not a name (lower-case letters, digits, - and _)',
  },
  'paths on a node': {
    schema: FileTarget,
    right: ['/etc/motd', '/a', '/opt/a b/c', '/etc/.hidden', '/a/...', '/a/..b', '/a/b..'],
    wrong: ['', '/', 'etc/motd', './a', '/etc/', '/a/..', '/a/../b', '/a/.', 'C:/a', '/a\n/../b'],
    words: 'is not an absolute path',
  },
  'users and groups of a system': {
    schema: UserName,
    right: ['root', '_apt', 'systemd-network', 'Machine$', 'u1'],
    wrong: ['', '0', '1u', 'a b', 'a:b', '-a', 'a$b', 'ä'],
    words: 'is not a user or group name',
  },
  'environment variables': {
    schema: EnvName,
    right: ['A', '_', 'lower', 'A1_b'],
    wrong: ['', '1A', 'A-B', 'A=B', 'A B', 'Ä', 'A\n'],
    words: 'is not the name of an environment variable',
  },
  packages: {
    schema: PackageName,
    right: ['bash', 'g++', 'libc6:arm64', 'linux-image-*', '@core', '389-ds', 'slurm=23.11.4-1', 'x=1:2.0~rc1+b2'],
    wrong: ['', '-y', '--allow-unauthenticated', '/etc/x.deb', 'a b', 'a;b', 'a=', '=1', 'a$b', 'a\n-y', '`a`'],
    words: 'is not the name of a package, with =VERSION where one is wanted',
  },
  'modes of files': {
    schema: FileMode,
    right: ['0644', '4755'],
    wrong: ['', '64', '00644', '0844', '-644', '0o644', 'rwx', 'u+x', ' 644'],
    words: 'is not a file mode such as "0644"',
  },
}

describe.each(Object.entries(specs))('%s', (_, { schema, right, wrong, words }) => {
  test.each(right)('%j', value => {
    expect(schema.safeParse(value)).toEqual({ success: true, data: value })
  })

  test.each(wrong)('not %j', value => {
    const { error } = schema.safeParse(value)
    expect(error?.issues.map(issue => issue.message)).toEqual([words])
  })
})

test('a mode of three digits is the one of four', () => {
  expect(FileMode.parse('644')).toBe('0644')
})

test('a mode that YAML took for a number is refused: 0644 and 0o644 would be different ones', () => {
  expect(FileMode.safeParse(0o644).success).toBe(false)
  expect(FileMode.safeParse(644).success).toBe(false)
})

test('names of files are held against the same pattern', () => {
  expect(['gpu', 'GPU', 'gpu-'].map(name => NAME.test(name))).toEqual([true, false, false])
})
