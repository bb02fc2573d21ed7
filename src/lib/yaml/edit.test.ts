import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { messageOf, MusterError } from '../errors.ts'
import { editYaml, type YamlEdit } from './edit.ts'
import { readYaml } from './read.ts'
import { plain } from './test-support.ts'

const NODES = `# nodes of rack 1
n1:
  groups: [compute, rack1]   # both
  interfaces:
    # the first port
    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0

# the second
n2:
  groups:
  - a
  - b
  key: !age |  # secret
    abc
    def
  empty:
  # trailing
last: 1`

/** The lines that differ, as in a patch. */
function diff(before: string, after: string): string[] {
  const [old, fresh] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  return [
    ...old.slice(start, old.length - end).map(line => `-${line}`),
    ...fresh.slice(start, fresh.length - end).map(line => `+${line}`),
  ]
}

describe('changes only the lines in question', () => {
  const cases: [string, YamlEdit, string[]][] = [
    [
      'a list in brackets, its comment kept',
      { op: 'set', path: ['n1', 'groups'], value: ['x', 'y z', 'a, b'] },
      ['-  groups: [compute, rack1]   # both', '+  groups: [x, y z, "a, b"]   # both'],
    ],
    [
      'a list of lines, its dashes where they were',
      { op: 'set', path: ['n2', 'groups'], value: ['x', { y: [1] }] },
      ['-  - a', '-  - b', '+  - x', '+  - y: [1]'],
    ],
    [
      'a quoted string, its quotes kept',
      { op: 'set', path: ['n1', 'interfaces', 'prov', 'mac'], value: 'none' },
      [
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+    prov: { mac: "none", ip: 10.0.0.1 }  # eth0',
      ],
    ],
    [
      'a new key in braces',
      { op: 'set', path: ['n1', 'interfaces', 'prov', 'vlan', 'id'], value: 7 },
      [
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1, vlan: { id: 7 } }  # eth0',
      ],
    ],
    [
      'a key less in braces',
      { op: 'delete', path: ['n1', 'interfaces', 'prov', 'mac'] },
      ['-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0', '+    prov: { ip: 10.0.0.1 }  # eth0'],
    ],
    [
      'the last key less in braces',
      { op: 'delete', path: ['n1', 'interfaces', 'prov', 'ip'] },
      [
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+    prov: { mac: "52:54:00:00:00:01" }  # eth0',
      ],
    ],
    [
      'another name in braces',
      { op: 'rename', path: ['n1', 'interfaces', 'prov', 'ip'], to: 'address' },
      [
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+    prov: { mac: "52:54:00:00:00:01", address: 10.0.0.1 }  # eth0',
      ],
    ],
    [
      'a new key',
      { op: 'set', path: ['n1', 'interfaces', 'bmc'], value: { mac: '52:54:00:00:00:02' } },
      ['+    bmc:', '+      mac: "52:54:00:00:00:02"'],
    ],
    ['a new key above trailing comments', { op: 'set', path: ['n2', 'x'], value: true }, ['+  x: true']],
    ['maps on the way', { op: 'set', path: ['n2', 'empty', 'a', 'b'], value: null }, ['+    a:', '+      b: null']],
    [
      'text of several lines',
      { op: 'set', path: ['n1', 'motd'], value: 'one\n\n  two\n' },
      ['+  motd: |', '+    one', '+', '+      two'],
    ],
    [
      'a secret',
      { op: 'set', path: ['n2', 'key'], value: 'new\nsecret', tag: '!age' },
      ['-  key: !age |  # secret', '-    abc', '-    def', '+  key: !age |-  # secret', '+    new', '+    secret'],
    ],
    ['a secret less', { op: 'delete', path: ['n2', 'key'] }, ['-  key: !age |  # secret', '-    abc', '-    def']],
    ['an empty value', { op: 'set', path: ['n2', 'empty'], value: 'yes' }, ['-  empty:', '+  empty: "yes"']],
    [
      'lines become one value',
      { op: 'set', path: ['n1', 'interfaces'], value: 3 },
      [
        '-  interfaces:',
        '-    # the first port',
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+  interfaces: 3',
      ],
    ],
    [
      'one value becomes lines',
      { op: 'set', path: ['n1', 'groups'], value: { a: 1 } },
      ['-  groups: [compute, rack1]   # both', '+  groups:   # both', '+    a: 1'],
    ],
    [
      'the only key of a map',
      { op: 'delete', path: ['n1', 'interfaces', 'prov'] },
      [
        '-  interfaces:',
        '-    # the first port',
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+  interfaces: {}',
        '+    # the first port',
      ],
    ],
    [
      'another name',
      { op: 'rename', path: ['n1', 'interfaces', 'prov'], to: 'eth 0' },
      [
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+    eth 0: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
      ],
    ],
    ['another name for a node', { op: 'rename', path: ['n1'], to: 'n[1-4]' }, ['-n1:', '+n[1-4]:']],
    ['a name that needs quotes', { op: 'rename', path: ['n1'], to: '{x}' }, ['-n1:', '+"{x}":']],
    [
      'a node less, comments kept',
      { op: 'delete', path: ['n1'] },
      [
        '-n1:',
        '-  groups: [compute, rack1]   # both',
        '-  interfaces:',
        '-    # the first port',
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
      ],
    ],
    ['a node more, at the end', { op: 'set', path: ['n3', 'groups'], value: ['a'] }, ['+n3:', '+  groups: [a]', '+']],
    ['nothing, when it is so already', { op: 'set', path: ['n1', 'groups'], value: ['compute', 'rack1'] }, []],
    ['nothing, when it is gone already', { op: 'delete', path: ['n2', 'empty', 'a'] }, []],
    [
      'only what differs of a map',
      {
        op: 'set',
        path: ['n1'],
        value: { interfaces: { prov: { mac: '52:54:00:00:00:01', ip: '10.0.0.9' } }, groups: ['compute', 'rack1'] },
      },
      [
        '-    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.1 }  # eth0',
        '+    prov: { mac: "52:54:00:00:00:01", ip: 10.0.0.9 }  # eth0',
      ],
    ],
  ]
  test.each(cases)('%s', (_, edit, expected) => {
    expect(diff(NODES, editYaml(NODES, [edit]))).toEqual(expected)
  })
})

const set = (path: string, value: unknown): YamlEdit => ({ op: 'set', path: path.split('.'), value })
const remove = (path: string): YamlEdit => ({ op: 'delete', path: path.split('.') })

describe('knows other layouts', () => {
  const cases: [string, string, YamlEdit[], string][] = [
    [
      'a text block set before what is left',
      'a: 1\nb: 1\n  # left\n',
      [remove('b'), set('a', 'x\ny\n')],
      'a: |\n  x\n  y\n# left\n',
    ],
    [
      'comments left after a text block',
      'a: |\n  x\nb: 1\n\n    # deep\nc: 2\n',
      [remove('b')],
      'a: |\n  x\n# deep\nc: 2\n',
    ],
    [
      'blank lines left after a text block that keeps its end',
      'a: |+\n  x\nb: 1\n\nc: 2\n',
      [remove('b')],
      'a: |+\n  x\nc: 2\n',
    ],
    [
      'two deletions after a text block',
      'a: |\n  x\nb: 1\nc: 2\n  # deep\n',
      [remove('c'), remove('b')],
      'a: |\n  x\n# deep\n',
    ],
    ['an empty file', '', [set('a.b', 1)], 'a:\n  b: 1\n'],
    ['a file of comments', '# none yet', [set('a', 1)], '# none yet\na: 1\n'],
    ['a start mark', '---', [set('a', 1)], '---\na: 1\n'],
    ['a file that says {}', '{}\n', [set('a.b', 1)], 'a:\n  b: 1\n'],
    ['a file in braces', '{ a: 1 }\n', [set('b', [2]), remove('a')], '{ b: [2] }\n'],
    ['JSON', '{"a":{"b":1}}', [set('a.c', 'x y')], '{"a":{"b":1, c: x y}}'],
    ['the last key of a file', '# c\na: 1\n', [remove('a')], '# c\n'],
    ['the last key of a file in braces', '{ a: 1 }\n', [remove('a')], '{}\n'],
    [
      'four spaces',
      'a:\n    b: 1\n',
      [set('a.c.d', 2), set('e.f', 3)],
      'a:\n    b: 1\n    c:\n        d: 2\ne:\n    f: 3\n',
    ],
    [
      'Windows line ends',
      'a: 1\r\nb: 2\r\n',
      [set('a', 3), set('c', 'x\ny\n')],
      'a: 3\r\nb: 2\r\nc: |\r\n  x\r\n  y\r\n',
    ],
    ['a byte-order mark', '\uFEFFa: 1\n', [set('a', 2)], '\uFEFFa: 2\n'],
    ['a file that is indented', '  a: 1\n', [set('b', 2)], '  a: 1\n  b: 2\n'],
    ['a document end', 'a: 1\n...\n', [set('a', 2)], 'a: 2\n...\n'],
    ['a new key before a document end', 'a: 1 # c\n...\n', [set('b', 2)], 'a: 1 # c\nb: 2\n...\n'],
    ['explicit keys, written anew', '? a\n: 1 # c\n', [{ op: 'rename', path: ['a'], to: 'b' }], 'b: 1 # c\n'],
    ['keys that are numbers', '1: { 2: a }\n', [set('1.2', 'b'), set('1.3', 'c')], '1: { 2: b, 3: c }\n'],
    [
      'braces over several lines',
      'a: {\n  b: 1, # one\n  c: 2 # two\n}\n',
      [set('a.d', 3)],
      'a: {\n  b: 1, # one\n  c: 2, # two\n  d: 3\n}\n',
    ],
    ['braces with a comma at the end', 'a: {\n  b: 1,\n}\n', [set('a.c', 2)], 'a: {\n  b: 1,\n  c: 2,\n}\n'],
    ['a line less in braces', 'a: {\n  b: 1, # one\n  c: 2 # two\n}\n', [remove('a.b')], 'a: {\n  c: 2 # two\n}\n'],
    ['braces that become empty', 'a: { b: { c: 1 } }\n', [remove('a.b.c')], 'a: { b: {} }\n'],
    ['empty braces', 'a: {} # c\n', [set('a.b', 1)], 'a: # c\n  b: 1\n'],
    ['empty braces in braces', 'a: { b: {} }\n', [set('a.b.c', 1)], 'a: { b: { c: 1 } }\n'],
    ['folded text', 'a: >\n  x\n  y\n\nb: 1\n', [set('a', 'z')], 'a: z\n\nb: 1\n'],
    ['scalars of several lines', 'a: x\n  y # c\nb: 1\n', [set('a', 'z')], 'a: z # c\nb: 1\n'],
    ['values below their key', 'a:\n  "x" # c\nb: 1\n', [set('a', 'z')], 'a: "z" # c\nb: 1\n'],
    ['single quotes', "a: 'x'\n", [set('a', "it's")], "a: 'it''s'\n"],
    [
      'edits that build on each other',
      'a: 1\n',
      [set('b.c', 1), { op: 'rename', path: ['b'], to: 'd' }, set('d.e', 2), remove('d.c'), remove('a')],
      'd:\n  e: 2\n',
    ],
    ['a key that comes back', 'a: 1\nb: 2\n', [remove('a'), set('a', 3)], 'b: 2\na: 3\n'],
    [
      'a name that became free',
      'a: 1\nb: 2\n',
      [
        { op: 'rename', path: ['a'], to: 'c' },
        { op: 'rename', path: ['b'], to: 'a' },
      ],
      'c: 1\na: 2\n',
    ],
  ]
  test.each(cases)('%s', (_, before, edits, after) => {
    expect(editYaml(before, edits)).toBe(after)
  })
})

describe('writes values as people do', () => {
  const long = Array.from({ length: 12 }, (_, i) => `member-${i}`)
  const cases: [string, unknown, string][] = [
    ['words', 'a b', 'a b'],
    ['paths and addresses', ['/etc/x', '10.0.0.1', 'http://a:80/b'], '[/etc/x, 10.0.0.1, http://a:80/b]'],
    ['numbers', [0, -0, 1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY], '[0, -0, 1.5, 1e+21, .nan, .inf]'],
    ['strings that look like numbers', ['1', '0x1', '1_000', '.5'], '["1", "0x1", "1_000", ".5"]'],
    [
      'what YAML 1.1 takes for something else',
      ['no', '12:30', '2024-01-31', '52:54:00:aa:bb:cc', 'fe80::1'],
      '["no", "12:30", "2024-01-31", "52:54:00:aa:bb:cc", "fe80::1"]',
    ],
    ['templates', '{{ index }}', '"{{ index }}"'],
    [
      'signs',
      ['- a', 'a: b', 'a #b', '#', '*', '&a', '!age', '@', ' a', 'a ', '-', '---', ''],
      '["- a", "a: b", "a #b", "#", "*", "&a", "!age", "@", " a", "a ", "-", "---", ""]',
    ],
    [
      'signs inside words',
      ['a#b', 'a:b', 'a-b', "it's", 'a"b', '-x', '.profile'],
      '[a#b, a:b, a-b, it\'s, a"b, -x, .profile]',
    ],
    ['control characters', 'a\tb\u0007\u0085\u2028', '"a\\tb\\u0007\\u0085\\u2028"'],
    ['one line and its end', 'a\n', '|\n  a'],
    ['lines without an end', 'a\nb', '|-\n  a\n  b'],
    ['lines a block cannot hold', [' a\nb', 'a\n\n', 'a\n \nb'], '[" a\\nb", "a\\n\\n", "a\\n \\nb"]'],
    ['long lists', long, `\n${long.map(member => `  - ${member}`).join('\n')}`],
    [
      'lists of maps and lists',
      [{ a: 1, b: { c: [] } }, [[{}]], 'x\ny\n'],
      '\n  - a: 1\n    b:\n      c: []\n  - - - {}\n  - |\n    x\n    y',
    ],
    [
      'maps, without what is undefined',
      { a: { b: null }, c: undefined, '1': 'x', true: {} },
      '\n  1: x\n  a:\n    b: null\n  "true": {}',
    ],
  ]
  test.each(cases)('%s', (_, value, expected) => {
    expect(editYaml('', [{ op: 'set', path: ['key'], value }])).toBe(
      `key:${expected.startsWith('\n') ? '' : ' '}${expected}\n`,
    )
  })
})

const ENDLESS: unknown[] = []
ENDLESS.push(ENDLESS)

describe('refuses', () => {
  const cases: [string, string, YamlEdit, string][] = [
    [
      'an endless value',
      '',
      { op: 'set', path: ['a'], value: ENDLESS },
      'the value is nested more than 64 levels deep',
    ],
    ['a file that is not YAML', 'a: [\n', { op: 'set', path: ['b'], value: 1 }, 'the file is not valid YAML: 2:1: '],
    [
      'a file with anchors',
      'a: &x 1\n',
      { op: 'set', path: ['b'], value: 1 },
      'the file is not valid YAML: 1:7: anchors',
    ],
    ['a path through a value', 'a: 1\n', { op: 'set', path: ['a', 'b'], value: 1 }, 'a is a single value, not a map'],
    ['a path through a list', 'a: { b: [] }\n', { op: 'delete', path: ['a', 'b', '0'] }, 'a.b is a list, not a map'],
    ['a file that is a list', '- a\n', { op: 'set', path: ['b'], value: 1 }, 'the file is a list, not a map'],
    ['an empty path', 'a: 1\n', { op: 'delete', path: [] }, 'the path of an edit is empty'],
    ['a rename of nothing', 'a: 1\n', { op: 'rename', path: ['b'], to: 'c' }, 'there is no b to rename'],
    [
      'a rename of nothing below',
      'a: { c: 1 }\n',
      { op: 'rename', path: ['a', 'b'], to: 'd' },
      'there is no a.b to rename',
    ],
    ['a name that is taken', 'a: 1\nb: 2\n', { op: 'rename', path: ['a'], to: 'b' }, 'there is a b already'],
    [
      'a name that is taken below',
      'x: { a: 1, b: 2 }\n',
      { op: 'rename', path: ['x', 'a'], to: 'b' },
      'there is a x.b already',
    ],
    [
      'a function',
      '',
      { op: 'set', path: ['a'], value: () => 1 },
      'a value of type function cannot be written to a YAML file',
    ],
    ['undefined', '', { op: 'set', path: ['a'], value: undefined }, 'a value of type undefined cannot be'],
    ['a date', '', { op: 'set', path: ['a'], value: new Date(0) }, 'a Date cannot be written to a YAML file'],
    [
      'an unknown tag',
      '',
      { op: 'set', path: ['a'], value: 'x', tag: '!vault' },
      'the tag !vault is not known; only !age is',
    ],
    ['a tag on a number', '', { op: 'set', path: ['a'], value: 1, tag: '!age' }, '!age marks a string'],
  ]
  test.each(cases)('%s', (_, text, edit, message) => {
    const error: unknown = catchError(() => editYaml(text, [edit]))
    expect(error).toMatchObject({ name: 'MusterError', code: 'EDIT_INVALID' })
    expect(messageOf(error)).toContain(message)
  })
})

function catchError(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}

describe('keeps everything else, whatever the edits', () => {
  const value = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.constantFrom('yes', 'a: b', '1', 'x\ny\n', 'x\n\ny', ' #', '52:54:00:00:00:01', '{{ x }}', "it's"),
    fc.integer(),
    fc.constantFrom(true, null, [], {}),
    fc.array(fc.string({ maxLength: 4 }), { maxLength: 3 }),
    fc.dictionary(fc.string({ minLength: 1, maxLength: 4 }), fc.oneof(fc.integer(), fc.string({ maxLength: 4 })), {
      maxKeys: 3,
    }),
  )
  const key = fc.constantFrom('a', 'b', 'c', 'd')
  const node = fc.constantFrom('n0', 'n1', 'n2')
  const path = fc.tuple(node, fc.array(key, { maxLength: 3 })).map(([first, rest]) => [first, ...rest])
  const edit: fc.Arbitrary<YamlEdit> = fc.oneof(
    fc.record({ op: fc.constant('set' as const), path, value }),
    fc.record({ op: fc.constant('delete' as const), path }),
    fc.record({ op: fc.constant('rename' as const), path, to: key }),
  )
  const lines = fc.array(
    fc.constantFrom(
      '  a: { b: 1, c: { d: x } }  # braces',
      '  b: [1, 2] # list',
      '  c:\n    a: 1 # one\n    # inside\n    b:\n      - x\n\n    c: |\n      text\n      # not a comment',
      '  d: # nothing yet',
      '  a: {\n    b: 1, # first\n    c: 2 }',
      '  b: "quoted"',
      '  c:\n  - a\n  - b: 1',
      '  d: |\n    text',
      '  d: |+\n    text\n',
    ),
    { minLength: 1, maxLength: 4 },
  )
  const piece = fc
    .tuple(lines, fc.constantFrom('', '\n', '# comment\n', '\n  # indented\n\n', '        # deep\n'))
    .map(([body, tail]) => {
      // Each key once.
      const unique = new Map(body.map(line => [line.slice(0, 4), line]))
      return `${[...unique.values()].join('\n')}\n${tail}`
    })
  const site = fc.tuple(piece, piece, piece, fc.constantFrom('', '# head\n\n', '---\n'))

  test('the other nodes to the byte, and the values are those of the edits', () => {
    fc.assert(
      fc.property(site, fc.array(edit, { minLength: 1, maxLength: 3 }), ([a, b, c, head], edits) => {
        const pieces = [head, `n0:\n${a}`, `n1:\n${b}`, `n2:\n${c}`]
        const before = pieces.join('')
        const expected = attempt(() => edits.reduce(model, plain(readYaml(before).tree)))
        const after = attempt(() => editYaml(before, edits))
        expect(after === REFUSED ? REFUSED : plain(readYaml(after).tree)).toEqual(expected)
        const touched = new Set(edits.map(({ path }) => path[0]))
        const others = pieces.filter(text => !touched.has(text.slice(0, 2)))
        expect(after === REFUSED || others.every(text => after.includes(text))).toBe(true)
      }),
      { numRuns: 1500 },
    )
  })

  test('each comment line, when a value of one line changes or a key comes or is renamed', () => {
    fc.assert(
      fc.property(
        site,
        node,
        fc.oneof(fc.integer(), fc.string()),
        fc.boolean(),
        ([a, b, c, head], name, value, rename) => {
          const before = `${head}n0:\n${a}n1:\n${b}n2:\n${c}`
          const added = editYaml(before, [{ op: 'set', path: [name, 'new'], value }])
          const after = editYaml(added, [
            rename ? { op: 'rename', path: [name, 'new'], to: 'newer' } : { op: 'delete', path: [name, 'new'] },
          ])
          expect(comments(after)).toEqual(comments(before))
          expect(rename || after === before).toBe(true)
          expect(diff(before, added).every(line => line.startsWith('+'))).toBe(true)
        },
      ),
      { numRuns: 500 },
    )
  })
})

const comments = (text: string): string[] => text.split('\n').filter(line => /^\s*# /.test(line))

const REFUSED = Symbol('refused')

function attempt<T>(run: () => T): T | typeof REFUSED {
  try {
    return run()
  } catch (error) {
    if (error instanceof MusterError && !error.message.includes('by hand')) return REFUSED
    throw error
  }
}

function refuse(): never {
  throw new MusterError('EDIT_INVALID', 'refused')
}

/** What an edit does to plain values, in the simplest words. */
function model(root: unknown, edit: YamlEdit): unknown {
  const [key = '', ...rest] = edit.path
  if (root !== null && root !== undefined && !(root instanceof Map)) return refuse()
  const map = new Map<string, unknown>(root)
  if (rest.length > 0) {
    if (edit.op === 'delete' && !map.has(key)) return root
    if (edit.op === 'rename' && !map.has(key)) return refuse()
    const inner = model(map.get(key), { ...edit, path: rest })
    return map.set(key, inner)
  }
  if (edit.op === 'set') return map.set(key, merged(map.get(key), toMap(edit.value)))
  if (edit.op === 'delete') {
    if (!map.delete(key)) return root
    return map
  }
  if (!map.has(key) || (edit.to !== key && map.has(edit.to))) return refuse()
  return new Map([...map].map(([name, value]) => [name === key ? edit.to : name, value]))
}

const toMap = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? new Map(Object.entries(value)) : value

/** A map over a map keeps the order of the keys that stay. */
function merged(old: unknown, value: unknown): unknown {
  if (!(old instanceof Map) || !(value instanceof Map) || value.size === 0) return value
  const stay = [...old.keys()].filter(key => value.has(key))
  const come = [...value.keys()].filter(key => !old.has(key))
  return new Map([...stay, ...come].map(key => [key, merged(old.get(key), value.get(key))]))
}
