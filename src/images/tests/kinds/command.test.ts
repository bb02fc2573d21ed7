import { expect, test } from 'vitest'
import { outcomesOf, treeSubject } from '../testing.ts'

test('a command says what it has to say', async () => {
  expect(
    await outcomesOf(
      await treeSubject({ 'etc/name': 'n001\n' }),
      `command:
  cat /etc/name: { exit-status: 0, stdout: n001, stderr: [] }
  both: { exec: 'echo "one $((1 + 1))"; echo three >&2; exit 4', exit-status: 4, stdout: ["/^one \\\\d$/", "!three"], stderr: three }
  json: { exec: 'echo "{\\"load\\": [0.5, 3]}"', exit-status: 0, stdout: { gjson: { load.1: { lt: 5 } } } }
  count: { exec: "printf 'a\\\\nb\\\\n'", exit-status: 0, stdout: { and: [[a, b], { have-len: 4 }, { not: { contain-element: c } }] } }
  false: { exit-status: 0, stdout: [x] }
  absent-program: { exit-status: 127 }
  self: { exec: exit 124, exit-status: 124 }
  sleep 600: { exit-status: { not: 0 }, stdout: ["!x"], timeout: 300 }
`,
    ),
  ).toEqual([
    'cat /etc/name exit-status: passed',
    'cat /etc/name stdout: passed',
    'cat /etc/name stderr: passed',
    'both exit-status: passed',
    'both stdout: passed',
    'both stderr: passed',
    'json exit-status: passed',
    'json stdout: passed',
    'count exit-status: passed',
    'count stdout: passed',
    'false exit-status: failed, 1',
    'false stdout: failed, ""',
    'absent-program exit-status: passed',
    'self exit-status: passed',
    'sleep 600 exit-status: failed, took longer than 300 ms',
    'sleep 600 stdout: failed, took longer than 300 ms',
  ])
})
