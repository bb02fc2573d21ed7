import { describe, expect, it } from 'vitest'
import { FileRenderer, type NodeFile, type OpenSecret } from './render-files.ts'
import { nodeNamed, openSite } from './site.ts'
import { type Files, SMALL, memorySource } from './testing.ts'

const SECRET = '!age |\n      -----BEGIN AGE ENCRYPTED FILE-----\n      YQ==\n      -----END AGE ENCRYPTED FILE-----\n'

async function rendererOf(
  files: Files,
  open: OpenSecret = async () => 'opened',
): Promise<(name: string) => Promise<NodeFile[]>> {
  const source = memorySource({ ...SMALL, ...files })
  const site = await openSite(source)
  const renderer = new FileRenderer(site, source, open)
  return name => renderer.render(nodeNamed(site, name))
}

const contentOf = (file: NodeFile | undefined): Buffer | undefined =>
  file !== undefined && 'content' in file ? file.content : undefined
const textOf = (file: NodeFile | undefined): string =>
  file !== undefined && 'problem' in file ? file.problem : (contentOf(file)?.toString('utf8') ?? '')

/** What n1 gets at /etc/it of this template. */
async function rendered(template: string, more: Files = {}): Promise<string> {
  const render = await rendererOf({
    'nodes.yaml':
      'n[1-3]:\n  groups: [compute]\n  files: { /etc/it: it.j2 }\n  vars: { rack: 4 }\n  interfaces: { prov: { address: "10.77.1.{{ index }}" } }\n',
    'groups/compute.yaml': '{}\n',
    'files/it.j2': template,
    ...more,
  })
  return (await render('n1')).map(textOf).join()
}

describe('a template', () => {
  it.for([
    ['{{ name }} {{ index }} {{ cluster }} {{ site }}\n', 'n1 1 demo demo\n'],
    ['{{ groups | join(" ") }}, {{ numbers[0] }}', 'compute, 1'],
    ['rack {{ vars.rack }} at {{ interfaces.prov.address }}', 'rack 4 at 10.77.1.1'],
    ['{{ networks.prov.gateway }}', '10.77.0.1'],
    [
      "{% for n in nodes('@compute') %}{{ n.interfaces.prov.address }} {{ n.name }}\n{% endfor %}",
      '10.77.1.1 n1\n10.77.1.2 n2\n10.77.1.3 n3\n',
    ],
    ["{% set all = nodes('n[2-3]') %}{{ all | length }} {{ all[0].index }}", '2 2'],
    ['{% set key = "rack" %}{{ vars[key] }}', '4'],
    ['{{ vars.deep.er is defined }} {{ vars.deep.er | default(1) }} {{ domain is defined }}', 'false 1 false'],
    ['{{ address }} {{ provision.servers | length }}', '10.77.1.1 0'],
    ['{# nothing #}\n\n', '\n\n'],
    ['<b>&"\'', '<b>&"\''],
    ['{{ "<&>" }}', '<&>'],
  ] as const)('%j', async ([template, expected]) => {
    expect(await rendered(template)).toBe(expected)
  })

  it.for([
    ['first\n{{ vars.rck }}\n', 'files/it.j2: line 2: there is no vars.rck'],
    ['{{ nobody }}', 'files/it.j2: line 1: there is no nobody'],
    ["{% for n in nodes('n1') %}{{ nobody }}{% endfor %}", 'files/it.j2: line 1: there is no nobody'],
    ['{{ vars.deep.er }}', 'files/it.j2: line 1: there is no vars.deep.er'],
    ['{{ name', 'files/it.j2: line 1: syntax error: unexpected end of input, expected end of variable block'],
    ["{{ nodes('@nobody') }}", 'files/it.j2: node set @nobody, column 1: no group is named nobody'],
  ] as const)('%j: is an error at its line', async ([template, message]) => {
    expect(await rendered(template)).toBe(message)
  })

  it('may look at every node of a large site', async () => {
    const text = await rendered("{% for n in nodes('n[1-5000]') %}{{ n.name }} {{ n.vars.rack }}\n{% endfor %}", {
      'nodes.yaml': 'n[1-5000]:\n  files: { /etc/it: it.j2 }\n  vars: { rack: "{{ index // 32 }}" }\n',
    })
    expect(text.split('\n')).toHaveLength(5001)
  })
})

describe('a file', () => {
  it('that is no template is taken as it is, with owner, group and mode', async () => {
    const bytes = Buffer.from([0, 255, 123, 123, 32, 120])
    const render = await rendererOf({
      'nodes.yaml': 'n1: { files: { /etc/a: { source: a, owner: munge, group: adm, mode: "0400" }, /etc/b: a } }\n',
      'files/a': bytes,
    })
    const [a, b] = await render('n1')
    expect(a).toMatchObject({
      path: '/etc/a',
      source: 'files/a',
      owner: 'munge',
      group: 'adm',
      mode: '0400',
      isSecret: false,
    })
    expect(contentOf(a)?.equals(bytes)).toBe(true)
    expect(b).toMatchObject({ path: '/etc/b', owner: 'root', group: 'root', mode: '0644' })
    expect(contentOf(b)).toBe(contentOf(a))
  })

  it('is rendered once for all nodes that give it the same values', async () => {
    const render = await rendererOf({
      'nodes.yaml': 'n[1-3]: { files: { /etc/a: a.j2, /etc/b: b.j2 }, vars: { rack: 1, own: "{{ name }}" } }\n',
      'files/a.j2': '{{ vars.rack }}',
      'files/b.j2': '{{ vars.own }}',
    })
    const [[a1, b1], [a2, b2]] = await Promise.all([render('n1'), render('n2')])
    expect(contentOf(a1)).toBe(contentOf(a2))
    expect([b1, b2].map(textOf)).toEqual(['n1', 'n2'])
  })
})

const shown = (file: NodeFile): string =>
  [
    file.kind,
    file.path,
    ...('mode' in file ? [file.mode, `${file.owner}:${file.group}`] : []),
    ...('source' in file ? [file.source] : []),
    ...('target' in file ? [file.target] : []),
    ...('when' in file ? [file.when] : []),
  ].join(' ')

describe('what is no single file', () => {
  const tree = {
    'files/ssh/sshd_config.j2': 'ListenAddress {{ name }}\n',
    'files/ssh/keys/ca.pub': 'a key\n',
    'files/ssh/keys/deep/x': '',
    'files/other': 'other\n',
  }
  const of = async (files: string): Promise<string[]> => {
    const render = await rendererOf({ 'nodes.yaml': `n1: { files: { ${files} } }\n`, ...tree })
    return (await render('n1')).map(shown)
  }

  it('a folder: all files in it, in order of path, templates without their suffix', async () => {
    expect(await of('/etc/ssh: { source: ssh, mode: "0600", owner: sshd }')).toEqual([
      'file /etc/ssh/keys/ca.pub 0600 sshd:root files/ssh/keys/ca.pub boot',
      'file /etc/ssh/keys/deep/x 0600 sshd:root files/ssh/keys/deep/x boot',
      'file /etc/ssh/sshd_config 0600 sshd:root files/ssh/sshd_config.j2 boot',
    ])
  })

  it('a folder with a mode for folders', async () => {
    expect(await of('/etc/ssh: { source: ssh/, dirMode: "700", group: 12, when: live }')).toEqual([
      'dir /etc/ssh 0700 root:12 files/ssh live',
      'dir /etc/ssh/keys 0700 root:12 files/ssh live',
      'file /etc/ssh/keys/ca.pub 0644 root:12 files/ssh/keys/ca.pub live',
      'dir /etc/ssh/keys/deep 0700 root:12 files/ssh live',
      'file /etc/ssh/keys/deep/x 0644 root:12 files/ssh/keys/deep/x live',
      'file /etc/ssh/sshd_config 0644 root:12 files/ssh/sshd_config.j2 live',
    ])
  })

  it('what is said of a path itself goes before what a folder brings there', async () => {
    expect(
      await of(
        '/etc/ssh/keys/ca.pub: other, /etc/ssh: { source: ssh }, /etc/ssh/keys/deep: { source: ssh/keys/deep, mode: "0400" }',
      ),
    ).toEqual([
      'file /etc/ssh/keys/ca.pub 0644 root:root files/other boot',
      'file /etc/ssh/keys/deep/x 0400 root:root files/ssh/keys/deep/x boot',
      'file /etc/ssh/sshd_config 0644 root:root files/ssh/sshd_config.j2 boot',
    ])
  })

  it('links, and what is to be absent', async () => {
    expect(await of('/etc/localtime: { link: "../usr/{{ name }}" }, /etc/motd: { absent: true, when: live }')).toEqual([
      'link /etc/localtime ../usr/n1 boot',
      'absent /etc/motd live',
    ])
  })

  it('what cannot be stands beside what can', async () => {
    const render = await rendererOf({
      'nodes.yaml': 'n1: { files: { /etc/a: { source: nothing }, /etc/b: other } }\n',
      ...tree,
    })
    expect((await render('n1')).map(file => [file.kind, textOf(file)])).toEqual([
      ['problem', 'there is no files/nothing'],
      ['file', 'other\n'],
    ])
  })
})

describe('a secret', () => {
  const files = {
    'site.yaml': `${SMALL['site.yaml']}  vars:\n    key: ${SECRET}secrets: { recipients: [] }\n`,
    'nodes.yaml': 'n[1-2]: { files: { /etc/key: key.j2, /etc/other: other.j2 } }\n',
    'files/key.j2': '{{ vars.key }}\n',
    'files/other.j2': "{% for n in nodes('n[1-2]') %}{{ n.vars is defined and n.vars.key is defined }} {% endfor %}",
  }

  it('is opened once for those files that it goes into, and they are known as such', async () => {
    let opened = 0
    const render = await rendererOf(files, async armored => {
      opened++
      expect(armored).toContain('YQ==')
      return 'open sesame'
    })
    const [key, other] = [...(await render('n1')), ...(await render('n2'))]
    expect(key).toMatchObject({ isSecret: true })
    expect(textOf(key)).toBe('open sesame\n')
    expect(other).toMatchObject({ isSecret: false })
    expect(opened).toBe(1)
  })

  it('is not in the words about what went wrong with it', async () => {
    const render = await rendererOf(
      { ...files, 'files/key.j2': '{{ vars.key | ip_add(1) }}', 'files/other.j2': '{{ vars.key }}{{ nobody }}' },
      async () => 'open sesame',
    )
    expect((await render('n1')).map(textOf)).toEqual([
      'files/key.j2: "(secret)" is not an address',
      'files/other.j2: line 1: there is no nobody',
    ])
  })

  it('that only goes wrong with its real text says nothing of it', async () => {
    const render = await rendererOf(
      { ...files, 'files/key.j2': "{% if vars.key == 'open sesame' %}{{ vars.key | ip_add(1) }}{% endif %}" },
      async () => 'open sesame',
    )
    expect(textOf((await render('n1'))[0])).toBe('files/key.j2: cannot be rendered with the secrets that are in it')
  })

  it('of another node cannot be seen', async () => {
    const render = await rendererOf(files)
    expect(textOf((await render('n1'))[1])).toBe('false false ')
  })
})
