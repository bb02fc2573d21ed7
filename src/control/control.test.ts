import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { setNodes } from '../site/edit.ts'
import { openWorkspace } from '../site/workspace.ts'
import type { Store } from '../state/store.ts'
import { Control } from './control.ts'
import { type Generation, currentGeneration, listGenerations } from './generations.ts'
import { AUTHOR, makeSite, nodesYaml, operator, startControl } from './testing.ts'

/** Everything the store holds, byte for byte. */
const everything = async (store: Store): Promise<string> =>
  JSON.stringify({ entries: await store.list(''), events: await store.events() })

const desiredOf = (control: Control): Record<string, { json: string; revision: number }> =>
  Object.fromEntries([...control.desired.nodes].map(([name, { json, revision }]) => [name, { json, revision }]))

const NOON = new Date('2026-03-01T12:00:00.000Z')

describe('apply', () => {
  it('does not wait for the lock of an image that nobody has committed yet', async () => {
    await using world = await startControl()
    const { control, site } = world
    const commit = await site.commit('Nodes')
    await site.write('images/base/lock.json', '{}')
    const { generation } = await control.apply(operator)
    expect(generation).toMatchObject({ commit, dirty: false, tree: await site.git('rev-parse', 'HEAD^{tree}') })
  })

  it('makes the committed site the desired state, and says who, when, what and from which commit', async () => {
    await using world = await startControl({ now: () => NOON })
    const { control, site, store } = world
    const commit = await site.commit('Four nodes to begin with')
    const applied = await control.apply(operator)

    const generation: Generation = {
      number: 1,
      commit,
      tree: await site.git('rev-parse', 'HEAD^{tree}'),
      dirty: false,
      author: AUTHOR.name,
      subject: 'Four nodes to begin with',
      appliedBy: 'olga',
      appliedAt: '2026-03-01T12:00:00.000Z',
      nodes: 4,
      groups: ['compute'],
    }
    expect(applied).toEqual({
      generation,
      diff: { added: 'n[001-004]', removed: '', changes: [], nodes: 4 },
      unchanged: false,
    })
    expect(await listGenerations(store)).toEqual([generation])
    expect([...control.desired.nodes.keys()]).toEqual(['n001', 'n002', 'n003', 'n004'])
    expect(control.desired.get('n003')?.value).toMatchObject({
      boot: { image: 'compute', root: 'ram' },
      interfaces: { prov: { address: '10.77.1.3' } },
      location: { switch: 'sw1', port: '3' },
    })
    expect(control.desired.get('n003')?.summary).toEqual({
      cluster: 'demo',
      groups: ['compute'],
      image: 'compute',
      address: '10.77.1.3',
    })
    const [event, ...others] = await store.events()
    expect(others).toEqual([])
    expect(event).toMatchObject({
      kind: 'site.applied',
      nodes: 'n[001-004]',
      actor: 'olga',
      from: '192.0.2.7',
      cause: commit,
      data: generation,
    })
  })

  it('changes only the nodes that differ, and takes away those that are gone', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    await site.write('nodes.yaml', `${nodesYaml(3)}n002: { boot: { root: disk } }\n`)
    await site.commit('Three nodes, one on disk')
    const { diff, generation } = await control.apply(operator)
    expect(diff).toEqual({
      added: '',
      removed: 'n004',
      changes: [{ nodes: 'n002', count: 1, path: 'boot.root', summary: 'ram → disk', at: 'nodes.yaml:6' }],
      nodes: 2,
    })
    expect(generation).toMatchObject({ number: 2, nodes: 2 })
    expect(Object.entries(desiredOf(control)).map(([name, { revision }]) => [name, revision])).toEqual([
      ['n001', 1],
      ['n002', 2],
      ['n003', 1],
    ])
    expect((await store.list('desired/')).map(entry => entry.key)).toEqual([
      'desired/n001',
      'desired/n002',
      'desired/n003',
    ])
    expect((await store.events()).at(-1)).toMatchObject({ kind: 'site.applied', nodes: 'n[002,004]' })
  })

  it.for([
    ['YAML that cannot be read', 'nodes.yaml', 'n001: [\n', /^nodes\.yaml:\d+:\d+: /],
    ['a key nobody knows', 'groups/compute.yaml', 'bot: { image: compute }\n', /^groups\/compute\.yaml:1:1: bot/],
    [
      'an image that does not exist',
      'nodes.yaml',
      'n001: { boot: { image: nope } }\n',
      /^nodes\.yaml:1:\d+: n001\.boot\.image: .*nope/,
    ],
    [
      'an address outside its network',
      'nodes.yaml',
      'n001: { interfaces: { prov: { address: 10.99.0.1 } } }\n',
      /10\.99\.0\.1 is outside/,
    ],
    [
      'a template that fails',
      'nodes.yaml',
      'n001: { vars: { a: "{{ nothing.at.all }}" } }\n',
      /^nodes\.yaml:1:\d+: n001\.vars\.a/,
    ],
  ] as const)('refuses %s, and leaves everything as it was', async ([, path, text, problem]) => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    const [before, desired] = [await everything(store), desiredOf(control)]
    const refs = await site.git('for-each-ref', 'refs/muster')
    await site.write(path, text)
    await site.commit('A mistake')

    await expect(control.apply(operator)).rejects.toMatchObject({
      code: 'SITE_INVALID',
      details: expect.arrayContaining([expect.stringMatching(problem)]) as unknown,
    })
    expect(await everything(store)).toBe(before)
    expect(desiredOf(control)).toEqual(desired)
    expect(await site.git('for-each-ref', 'refs/muster')).toBe(refs)
    expect((await control.appliedSite()).nodes.size).toBe(4)

    await site.git('revert', '--no-edit', 'HEAD')
    await expect(control.apply(operator)).resolves.toMatchObject({ unchanged: true, generation: { number: 1 } })
  })

  it('does nothing at all when the site is in force already', async () => {
    await using world = await startControl()
    const { control, store } = world
    const first = await control.apply(operator)
    const before = await everything(store)
    for (let time = 0; time < 3; time++) {
      expect(await control.apply(operator)).toEqual({
        generation: first.generation,
        diff: { added: '', removed: '', changes: [], nodes: 0 },
        unchanged: true,
      })
    }
    expect(await everything(store)).toBe(before)
  })

  it('records a commit that changes no node as a generation that changes none', async () => {
    await using world = await startControl()
    const { control, site } = world
    await control.apply(operator)
    await site.write('nodes.yaml', `# a comment\n${await site.read('nodes.yaml')}`)
    const commit = await site.commit('A comment')
    await expect(control.apply(operator)).resolves.toMatchObject({
      unchanged: false,
      generation: { number: 2, commit, nodes: 0 },
    })
  })

  it('keeps what it applied in git, whatever becomes of the branch', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    const { generation } = await control.apply(operator)
    await site.git('checkout', '--quiet', '--orphan', 'other')
    await site.write('nodes.yaml', nodesYaml(2))
    await site.commit('Another history')
    await site.git('branch', '--quiet', '-D', 'main')
    await site.git('reflog', 'expire', '--expire=now', '--all')
    await site.git('gc', '--quiet', '--prune=now')

    expect(await site.git('rev-parse', 'refs/muster/generation-1')).toBe(generation.commit)
    const again = await Control.start(store, await openWorkspace(site.dir))
    expect((await again.appliedSite()).nodes.size).toBe(4)
  })
})

describe('a site with changes that are not committed', () => {
  it('is refused, with the files named, and nothing changes', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    const before = await everything(store)
    await site.write('nodes.yaml', nodesYaml(2))
    await site.write('files/new.txt', 'new\n')
    await expect(control.apply(operator)).rejects.toMatchObject({
      code: 'SITE_DIRTY',
      message: 'the site has changes that are not committed: nodes.yaml, files/new.txt',
    })
    expect(await everything(store)).toBe(before)
    expect(control.desired.nodes.size).toBe(4)
  })

  it('is refused without a list as long as the site', async () => {
    await using world = await startControl()
    for (let number = 1; number <= 8; number++) await world.site.write(`files/${number}.txt`, 'new\n')
    await expect(world.control.apply(operator)).rejects.toMatchObject({
      message:
        'the site has changes that are not committed: files/1.txt, files/2.txt, files/3.txt, files/4.txt, files/5.txt and 3 more',
    })
  })

  it('names a renamed file by its names', async () => {
    await using world = await startControl()
    const { control, site } = world
    await site.git('mv', 'files/motd.j2', 'files/issue.j2')
    await expect(control.apply(operator)).rejects.toMatchObject({
      code: 'SITE_DIRTY',
      message: expect.stringMatching(/committed: files\/issue\.j2(, files\/motd\.j2)?$/) as unknown,
    })
  })

  it('can be looked at, and applied when one insists, with a tree of its own', async () => {
    await using world = await startControl()
    const { control, site } = world
    const commit = await site.git('rev-parse', 'HEAD')
    await site.write('nodes.yaml', nodesYaml(2))
    await site.git('add', 'nodes.yaml')
    const status = await site.git('status', '--porcelain')

    const plan = await control.plan()
    expect(plan).toMatchObject({
      generation: 0,
      commit,
      dirty: ['nodes.yaml'],
      diff: { added: 'n[001-002]', nodes: 2 },
    })
    const { generation } = await control.apply(operator, { allowDirty: true, expect: plan })
    expect(generation).toMatchObject({ number: 1, commit, dirty: true, tree: plan.tree, nodes: 2 })
    expect(generation.tree).not.toBe(await site.git('rev-parse', 'HEAD^{tree}'))
    expect(await site.git('show', `${generation.tree}:nodes.yaml`)).toBe(nodesYaml(2).trimEnd())
    expect(await site.git('rev-parse', 'refs/muster/generation-1')).toBe(generation.tree)
    // Neither the files, nor what was staged, nor the branch was touched, and nothing was left behind.
    expect(await site.git('status', '--porcelain')).toBe(status)
    expect(await site.git('rev-parse', 'HEAD')).toBe(commit)
    expect((await readdir(join(site.dir, '.git'))).filter(name => name.includes('muster'))).toEqual([])
  })

  it('can be gone back to later, though it was never committed', async () => {
    await using world = await startControl()
    const { control, site } = world
    await site.write('nodes.yaml', nodesYaml(2))
    await site.write('files/motd.j2', 'never committed\n')
    await control.apply(operator, { allowDirty: true })
    await site.git('checkout', '--quiet', '--', '.')
    await control.apply(operator)
    expect(control.desired.nodes.size).toBe(4)
    await site.git('gc', '--quiet', '--prune=now')

    const { generation } = await control.revert(operator, 1)
    expect(generation).toMatchObject({ number: 3, dirty: false, nodes: 4 })
    expect(control.desired.nodes.size).toBe(2)
    expect(await site.read('files/motd.j2')).toBe('never committed\n')
    expect(await site.git('status', '--porcelain')).toBe('')
  })
})

describe('expect', () => {
  it('applies what the plan showed', async () => {
    await using world = await startControl()
    const { tree, generation } = await world.control.plan()
    await expect(world.control.apply(operator, { expect: { tree, generation } })).resolves.toMatchObject({
      generation: { number: 1, tree },
    })
  })

  it.for([
    ['another commit', { tree: '0'.repeat(40), generation: 1 }],
    ['another generation', { generation: 0 }],
    ['a generation that is yet to come', { generation: 2 }],
  ] as const)('refuses with SITE_MOVED after %s', async ([, seen]) => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    await site.write('nodes.yaml', nodesYaml(2))
    await site.commit('Two nodes')
    const { tree } = await control.plan()
    const before = await everything(store)
    await expect(control.apply(operator, { expect: { tree, ...seen } })).rejects.toMatchObject({ code: 'SITE_MOVED' })
    expect(await everything(store)).toBe(before)
  })
})

describe('revert', () => {
  it('makes a commit with the old files, by whoever asked, and a new generation of it', async () => {
    await using world = await startControl({ now: () => NOON })
    const { control, site, store } = world
    const first = await control.apply(operator)
    const original = await site.read('nodes.yaml')
    await site.write('nodes.yaml', nodesYaml(2))
    await site.write('groups/extra.yaml', 'vars: { extra: true }\n')
    await site.git('rm', '--quiet', '.schema/site.json')
    const second = await site.commit('Two nodes, a group more, a file less')
    await control.apply(operator)

    const { generation, diff, unchanged } = await control.revert({ ...operator, name: 'rita' }, 1)
    expect({ diff, unchanged }).toEqual({
      diff: { added: 'n[003-004]', removed: '', changes: [], nodes: 2 },
      unchanged: false,
    })
    expect(generation).toMatchObject({
      number: 3,
      tree: first.generation.tree,
      dirty: false,
      author: 'rita',
      subject: 'Revert to generation 1',
      appliedBy: 'rita',
    })
    expect(await site.git('log', '-1', '--format=%an <%ae>%n%P%n%B')).toBe(
      [
        'rita <rita@muster>',
        second,
        'Revert to generation 1',
        '',
        `That was ${first.generation.commit.slice(0, 12)}: ${first.generation.subject}`,
      ].join('\n'),
    )
    expect(await site.read('nodes.yaml')).toBe(original)
    expect(await site.git('ls-files', 'groups', '.schema/site.json')).toBe('.schema/site.json\ngroups/compute.yaml')
    expect(await site.git('status', '--porcelain')).toBe('')
    expect((await listGenerations(store)).map(one => one.number)).toEqual([3, 2, 1])
  })

  it('to what is in force changes nothing', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    const [before, head] = [await everything(store), await site.git('rev-parse', 'HEAD')]
    await expect(control.revert(operator, 1)).resolves.toMatchObject({ unchanged: true, generation: { number: 1 } })
    expect(await everything(store)).toBe(before)
    expect(await site.git('rev-parse', 'HEAD')).toBe(head)
  })

  it.for([0, 2, -1, 999_999_999])('to generation %i, which does not exist, is refused', async number => {
    await using world = await startControl()
    const { control, store, site } = world
    await control.apply(operator)
    const [before, head] = [await everything(store), await site.git('rev-parse', 'HEAD')]
    await expect(control.revert(operator, number)).rejects.toMatchObject({
      code: 'GENERATION_UNKNOWN',
      message: `there is no generation ${number}`,
    })
    expect(await everything(store)).toBe(before)
    expect(await site.git('rev-parse', 'HEAD')).toBe(head)
  })

  it('to a generation that would not be valid today is refused, and no file is touched', async () => {
    await using world = await startControl()
    const { control, store, site } = world
    const { generation } = await control.apply(operator)
    await site.write('groups/compute.yaml', 'known_to_an_older_muster: true\n')
    const commit = await site.commit('Was valid once')
    const tree = await site.git('rev-parse', 'HEAD^{tree}')
    await site.git('reset', '--quiet', '--hard', 'HEAD~1')
    const old: Generation = { ...generation, number: 7, commit, tree }
    await store.commit(
      [{ key: 'generations/0000000007', value: JSON.stringify(old) }],
      [{ kind: 'test.prepared', actor: 'test' }],
    )
    const [before, head] = [await everything(store), await site.git('rev-parse', 'HEAD')]
    await expect(control.revert(operator, 7)).rejects.toMatchObject({ code: 'SITE_INVALID' })
    expect(await everything(store)).toBe(before)
    expect(await site.git('rev-parse', 'HEAD')).toBe(head)
    expect(await site.git('status', '--porcelain')).toBe('')
  })

  it('is refused while there are changes that it would lose', async () => {
    await using world = await startControl()
    const { control, site } = world
    await control.apply(operator)
    await site.write('nodes.yaml', nodesYaml(2))
    await site.commit('Two nodes')
    await control.apply(operator)
    await site.write('files/motd.j2', 'precious\n')
    await expect(control.revert(operator, 1)).rejects.toMatchObject({ code: 'SITE_DIRTY' })
    expect(await site.read('files/motd.j2')).toBe('precious\n')
  })
})

describe('a site in a folder of a larger repository', () => {
  it('is applied, edited and reverted without the rest being touched', async () => {
    await using world = await startControl({}, 'sites/demo')
    const { control, site } = world
    await site.write('../../README', 'first\n')
    await site.commit('Something else')
    await control.apply(operator)
    await control.edit(operator, now => setNodes(now, 'n001', { 'boot.root': 'disk' }), 'n001 on disk')
    await site.write('../../README', 'second\n')
    await site.commit('Something else again')
    await control.apply(operator)
    // Somebody is in the middle of something, outside the site.
    await site.write('../../README', 'staged\n')
    await site.git('add', '../../README')
    await site.write('../../README', 'not even staged\n')

    const { generation } = await control.revert(operator, 1)
    expect(generation).toMatchObject({ number: 3, nodes: 1, dirty: false })
    expect(await site.git('show', '--name-only', '--format=')).toBe('sites/demo/nodes.yaml')
    expect(await site.git('status', '--porcelain')).toBe('MM README')
    expect(await site.git('show', ':README')).toBe('staged')
    expect(await site.read('../../README')).toBe('not even staged\n')
  })
})

describe('edit', () => {
  it('commits as whoever asked and tells; it does not apply', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    const desired = desiredOf(control)
    const done = await control.edit(operator, now => setNodes(now, 'n002', { 'boot.root': 'disk' }), 'n002 on disk')
    expect(done).toEqual({ commit: await site.git('rev-parse', 'HEAD'), files: ['nodes.yaml'] })
    expect(await site.git('log', '-1', '--format=%an <%ae> %s')).toBe('olga <olga@muster> n002 on disk')
    expect(await site.git('status', '--porcelain')).toBe('')
    expect(desiredOf(control)).toEqual(desired)
    expect((await store.events()).at(-1)).toMatchObject({
      kind: 'site.edited',
      actor: 'olga',
      from: '192.0.2.7',
      data: { ...done, message: 'n002 on disk' },
    })
  })

  it('that would make the site invalid is refused, and no file, commit or event is made', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    const [before, head, text] = [
      await everything(store),
      await site.git('rev-parse', 'HEAD'),
      await site.read('nodes.yaml'),
    ]
    const edit = control.edit(operator, now => setNodes(now, 'n002', { 'boot.image': 'nope' }), 'a mistake')
    await expect(edit).rejects.toMatchObject({ code: 'SITE_INVALID' })
    expect(await everything(store)).toBe(before)
    expect(await site.git('rev-parse', 'HEAD')).toBe(head)
    expect(await site.read('nodes.yaml')).toBe(text)
    expect(await site.git('status', '--porcelain')).toBe('')
  })

  it('that changes nothing is not an error of ours', async () => {
    await using world = await startControl()
    const { control, site } = world
    const edit = () => control.edit(operator, now => setNodes(now, 'n002', { 'boot.root': 'disk' }), 'n002 on disk')
    await edit()
    const head = await site.git('rev-parse', 'HEAD')
    const again = await edit().catch((error: unknown) => error)
    expect(again).not.toMatchObject({ code: 'EXEC_FAILED' })
    expect(await site.git('rev-parse', 'HEAD')).toBe(head)
    expect(await site.git('status', '--porcelain')).toBe('')
  })

  it('of twenty nodes at once keeps every one, in twenty commits', async () => {
    await using world = await startControl()
    const { control, site } = world
    await site.write('nodes.yaml', nodesYaml(20))
    const base = await site.commit('Twenty nodes')
    const names = Array.from({ length: 20 }, (_, index) => `n${String(index + 1).padStart(3, '0')}`)
    const done = await Promise.all(
      names.map(name => control.edit(operator, now => setNodes(now, name, { 'vars.mine': name }), `edit ${name}`)),
    )
    expect(new Set(done.map(({ commit }) => commit)).size).toBe(20)
    const subjects = (await site.git('log', '--reverse', '--format=%s', `${base}..HEAD`)).split('\n')
    expect(subjects).toEqual(names.map(name => `edit ${name}`))
    await control.apply(operator)
    expect(names.map(name => control.desired.get(name)?.value['vars'])).toEqual(names.map(mine => ({ mine })))
  })

  it('and apply at the same time never meet: every generation is a whole commit', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    const work = Array.from({ length: 8 }, (_, index) => [
      control.edit(operator, now => setNodes(now, 'n001', { 'vars.count': index }), `count ${index}`),
      control.apply(operator),
      control.plan(),
    ]).flat()
    await Promise.all(work)
    const generations = await listGenerations(store)
    expect(generations.map(one => [one.number, one.subject])).toEqual([
      ...[7, 6, 5, 4, 3, 2, 1, 0].map(index => [index + 2, `count ${index}`]),
      [1, 'Begin site demo'],
    ])
    for (const { commit, tree, dirty } of generations) {
      expect(dirty).toBe(false)
      expect(await site.git('rev-parse', `${commit}^{tree}`)).toBe(tree)
    }
    expect(control.desired.get('n001')?.value['vars']).toEqual({ count: 7 })
  })
})

describe('a restart', () => {
  it('finds the desired state as it was, and goes on from there', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    await site.write('nodes.yaml', `${nodesYaml(5)}n002: { boot: { root: disk } }\n`)
    await site.commit('Five nodes')
    await control.apply(operator)

    const again = await Control.start(store, await openWorkspace(site.dir))
    expect(desiredOf(again)).toEqual(desiredOf(control))
    await expect(again.apply(operator)).resolves.toMatchObject({ unchanged: true, generation: { number: 2 } })
    await expect(again.revert(operator, 1)).resolves.toMatchObject({ generation: { number: 3, nodes: 2 } })
  })

  it('takes the state from the store, not from files that changed meanwhile', async () => {
    await using world = await startControl()
    const { control, site, store } = world
    await control.apply(operator)
    await site.write('nodes.yaml', 'n001: [broken\n')
    await site.commit('Broken')
    const again = await Control.start(store, await openWorkspace(site.dir))
    expect(desiredOf(again)).toEqual(desiredOf(control))
    expect((await again.appliedSite()).nodes.size).toBe(4)
  })
})

describe('before anything was applied', () => {
  it('there is no generation and no applied site', async () => {
    await using world = await startControl()
    expect(await currentGeneration(world.store)).toEqual({ generation: undefined, revision: 0 })
    expect(world.control.desired.nodes.size).toBe(0)
    await expect(world.control.appliedSite()).rejects.toMatchObject({
      code: 'GENERATION_UNKNOWN',
      hint: 'apply it with: muster site apply',
    })
    await expect(world.control.revert(operator, 1)).rejects.toMatchObject({ code: 'GENERATION_UNKNOWN' })
  })
})

describe('a repository without a commit', () => {
  it('can be opened; plan and apply say what to do, and nothing is stored', async () => {
    await using made = await makeSite()
    await made.git('update-ref', '-d', 'HEAD')
    await made.git('rm', '--quiet', '-r', '--cached', '.')
    await using world = await startControl()
    const control = await Control.start(world.store, await openWorkspace(made.dir))
    const first = { code: 'SITE_NOT_GIT', message: 'the repository has no commit yet' }
    await expect(control.plan()).rejects.toMatchObject(first)
    await expect(control.apply(operator, { allowDirty: true })).rejects.toMatchObject(first)
    // To insist on uncommitted changes would not help here: the message must be about the commit that is missing.
    await expect(control.apply(operator)).rejects.toMatchObject(first)
    expect(await world.store.revision()).toBe(0)

    await made.commit('First')
    await expect(control.apply(operator)).resolves.toMatchObject({ generation: { number: 1, nodes: 4 } })
  })
})

describe('a site that is in no repository', () => {
  it('is refused at the start', async () => {
    await using made = await makeSite()
    await rm(join(made.dir, '.git'), { recursive: true })
    await expect(openWorkspace(made.dir)).rejects.toMatchObject({
      code: 'SITE_NOT_GIT',
      message: `${made.dir} is not in a git repository`,
    })
  })
})
