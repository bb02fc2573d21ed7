import { describe, expect, test } from 'vitest'
import { failureOf } from '../../../site/testing.ts'
import { parseFacts } from './facts.ts'

const said = (...lines: readonly string[]): Buffer =>
  Buffer.from(`muster-facts 1\n${lines.join('\n')}\nend\n`, 'latin1')
const refusal = (bytes: Buffer | string): Promise<string> => failureOf(() => parseFacts(Buffer.from(bytes), 'ssh:n1'))
const because = (why: string): string => `EXEC_FAILED: what ssh:n1 says of itself cannot be understood: ${why}`

describe('facts', () => {
  test('are fields by kind, in the order they were said', () => {
    const {
      package: packages,
      enabled,
      user,
    } = parseFacts(
      said('package\tvim\t9.0\toptional\teditors', 'enabled\tssh.service', 'package\tgit\t2.39\toptional\tvcs'),
      'x',
    )
    expect({ packages, enabled, user }).toEqual({
      packages: [
        ['vim', '9.0', 'optional', 'editors'],
        ['git', '2.39', 'optional', 'vcs'],
      ],
      enabled: [['ssh.service']],
      user: [],
    })
  })

  test('that quote a line of a file keep its tabs', () => {
    expect(parseFacts(said('sysctl\t/etc/sysctl.conf\tkernel.sem=1\t2\t3'), 'x').sysctl).toEqual([
      ['/etc/sysctl.conf', 'kernel.sem=1\t2\t3'],
    ])
  })

  test('may come after the greeting of a login shell', () => {
    const greeted = Buffer.concat([Buffer.from('Welcome, \u001B[1mroot\u001B[0m\n'), said('asked\tvim')])
    expect(parseFacts(greeted, 'x').asked).toEqual([['vim']])
  })

  test.each<[what: string, bytes: Buffer | string, why: string]>([
    ['nothing at all', '', 'it does not begin as it should'],
    ['another version', 'muster-facts 2\nend\n', 'it does not begin as it should'],
    ['what was cut short', 'muster-facts 1\nasked\tvim\n', 'it does not end as it should'],
    ['what goes on', 'muster-facts 1\nend\nasked\tvim\n', 'it does not end as it should'],
    ['an unknown kind', said('asked\tvim', 'constructor\tx'), 'line 3 is no fact'],
    ['an empty line', said('asked\tvim', '', 'asked\tgit'), 'line 3 is no fact'],
    ['too few fields', said('package\tvim'), 'line 2 has 1 fields, not 4'],
    ['too many fields', said('asked\tvim\tgit'), 'line 2 has 2 fields, not 1'],
    ['no fields', said('sysctl'), 'line 2 has 1 fields, not 2'],
    ['an escape sequence', said('asked\t\u001B[2Jvim'), 'line 2 has a control character in it'],
    ['a carriage return', said('asked\tvim\r'), 'line 2 has a control character in it'],
    ['a zero byte', said('asked\tvi\0m'), 'line 2 has a control character in it'],
    ['a line without end', said(`asked\t${'x'.repeat(5000)}`), 'line 2 is too long'],
    ['too many lines', said(...Array.from({ length: 50_001 }, () => 'asked\tx')), 'it says more than 50000 lines'],
    ['too many bytes', Buffer.alloc(4 * 2 ** 20 + 1), 'it says more than 4 MiB'],
  ])('refuses %s', async (_, bytes, why) => {
    expect(await refusal(bytes)).toBe(because(why))
  })
})
