import type { Tree, YamlResult } from './tree.ts'

/** A result as text that a test can spell out: each value with its line and column, then the problems. */
export function show({ tree, problems }: YamlResult): string[] {
  const lines = tree === undefined ? [] : showTree(tree, '')
  return [...lines, ...problems.map(({ line, column, message }) => `${line}:${column} problem: ${message}`)]
}

function showTree(tree: Tree, margin: string): string[] {
  const place = `${margin}${tree.line}:${tree.column}`
  if (tree.kind === 'scalar') return [`${place} ${tree.tag === undefined ? '' : `${tree.tag} `}${literal(tree.value)}`]
  if (tree.kind === 'list') return [`${place} list`, ...tree.items.flatMap(item => showTree(item, `${margin}  `))]
  const entries = [...tree.entries].flatMap(([key, { line, column, value }]) => {
    const [first = '', ...rest] = showTree(value, `${margin}  `)
    return [`${margin}  ${line}:${column} ${key} = ${first.trimStart()}`, ...rest]
  })
  return [`${place} map`, ...entries]
}

const literal = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : Object.is(value, -0) ? '-0' : String(value)

/** Values alone, maps as Map so that the order of keys counts. */
export function plain(tree: Tree | undefined): unknown {
  if (tree === undefined) return new Map()
  if (tree.kind === 'scalar') return tree.value
  if (tree.kind === 'list') return tree.items.map(plain)
  return new Map([...tree.entries].map(([key, { value }]) => [key, plain(value)]))
}

/** What people write: the fast reader must not give up on any of these. */
export const ORDINARY: Readonly<Record<string, string>> = {
  nothing: '',
  'only comments': '# nothing here\n\n  # yet\n',
  'a start mark': '# first\n---\na: 1\n',
  'only a start mark': '---\n',
  'no newline at the end': 'a: 1',
  'a site': `# site.yaml
site: demo
domain: demo.cluster
networks:
  prov: { cidr: 10.77.0.0/16, gateway: 10.77.0.1, unknown: 10.77.255.0/24 }   # for strangers
  ib:
    cidr: fd00::/64
    gateway: ::1

defaults:                                  # the lowest layer
  boot: { image: compute, root: ram, args: [console=ttyS0,115200, "a b", 'it''s'] }
  empty:
  commented: # nothing
  nothing: ~
`,
  'node sets': `n[001-128]:
  groups: [compute, rack1]
  location: { switch: sw1, port: "{{ index }}" }
  interfaces:
    prov: { mac: "52:54:00:00:00:01", address: "{{ '10.77.1.0' | ip_add(index) }}" }
  bmc: { driver: redfish, address: "tab\\there \\u00e9" }
`,
  lists: `list:
- a
- b: 1
  c: 2.5
- - x
  - y
deeper:
    - [1, 0x1f, 0o17, .inf, -.5, 1e3]
    - |-
      script
        indented
    - "quoted" # comment
    -   spaced: true
        more: false
last: []
`,
  'a list': `- a: 1
  b:
  - x
  - y: |
     text
  c: {}
- []
- plain text: with colon
- http://host:80/path#fragment
- null
`,
  'brackets over several lines': `files: {
  /etc/slurm/slurm.conf: slurm.conf.j2, # comment
  "quoted": 'single',
  nested: [ a,
    b , c
  ],
}
list:
  - [
    a, b
  ]
"quoted key": v
'single key' : w
`,
  text: `script: |
  #!/bin/sh
  echo "hello"   # part of the text

  if true; then
  \techo tab
  fi
other: |-

  starts with an empty line
last: text
`,
  secrets: `password: !age |
  -----BEGIN AGE ENCRYPTED FILE-----
  YWdlLWVuY3J5cHRpb24ub3Jn
  -----END AGE ENCRYPTED FILE-----
short: !age "YWdl"
plain: !age YWdl
`,
  JSON: '{ "a": [1, 2, {"b":3}],\n"c": "d" }\n',
  'odd but fine': `a key with spaces: a value, with:colons? yes, [and] {more}
-dash: -1
"#": '#'
url: http://a/#b
utf8: größe 😀
nbsp: a\u00a0b
"<<": quoted
1: one
null: nothing
trailing:   spaces   
`,
}
