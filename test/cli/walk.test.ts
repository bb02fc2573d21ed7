import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { VERSION } from '../../src/version.ts'
import {
  type Lab,
  MUSTER,
  type Ran,
  type RunOptions,
  columns,
  git,
  normalise,
  run,
  serve,
  start,
  startLab,
} from './testing.ts'

/** One walk over a real server, from an empty one to a restored one; each step builds on those before. */
let lab: Lab
beforeAll(async () => {
  lab = await startLab()
})
afterAll(() => lab[Symbol.asyncDispose]())

/** A command, with what differs every time made the same. */
async function ran(words: string | readonly string[], options?: RunOptions): Promise<Ran> {
  const { status, stdout, stderr } = await lab.muster(words, options)
  return { status, stdout: columns(stdout), stderr: normalise(stderr) }
}

/** What a command that succeeds prints. */
const printed = (stdout: string): Ran => ({ status: 0, stdout: columns(stdout), stderr: '' })

/** What a command that fails prints: nothing but an error and a hint. */
const failed = (status: number, stderr: string): Ran => ({ status, stdout: '', stderr })

describe('a new server', () => {
  it('has nothing, and says the next step', async () => {
    expect(await ran('status')).toEqual(
      printed(`muster ${VERSION}, revision 0
site ${lab.site}: 0 nodes
nothing applied yet; next: muster site diff, then muster site apply
`),
    )
    expect(await ran('node ls')).toEqual(printed('NODES   COUNT   STATE   IMAGE   CLUSTER   GROUPS\n'))
    expect(await ran('events')).toEqual(printed(''))
    expect(await ran('site log')).toEqual(printed('GENERATION   COMMIT   NODES   APPLIED   BY   AUTHOR   SUBJECT\n'))
  })

  it('does not print warnings of the libraries it is made of', () => {
    expect(lab.server.program.stderr).toBe('')
  })

  it('shows what applying would change', async () => {
    expect(await ran('site diff')).toEqual(
      printed(`+ gpu[01-02],login1,n[001-004]
nothing reboots by itself; to make it the desired state: muster site apply
`),
    )
  })

  it('applies the site', async () => {
    expect(await ran('site apply --yes')).toEqual(
      printed(`+ gpu[01-02],login1,n[001-004]
generation 1 applied: commit c0ffee0000, 7 nodes changed
`),
    )
    expect(await ran('site apply')).toEqual(
      printed('no difference\nnothing to do: generation 1 (c0ffee0000) is in force\n'),
    )
    expect(await ran('site diff')).toEqual(printed('no difference\n'))
    expect(await ran('site diff --exit-code')).toEqual(printed('no difference\n'))
    expect(await ran('status')).toEqual(
      printed(`muster ${VERSION}, revision 1
site ${lab.site}: 7 nodes
generation 1: commit c0ffee0000 "First", applied 0000-00-00T00:00:00.000Z by root
`),
    )
  })
})

describe('nodes and groups', () => {
  it('lists nodes, alike ones on one line', async () => {
    const { stdout } = await lab.muster('node ls')
    expect(stdout).toBe(`NODES        COUNT   STATE     IMAGE            CLUSTER   GROUPS
gpu[01-02]   2       unknown   gpu              demo      compute,gpu
login1       1       unknown   base             demo      -
n[001-004]   4       unknown   compute@stable   demo      compute
`)
  })

  it.each([
    ['n[001-002]', 'n[001-002]   2   unknown   compute@stable   demo   compute\n'],
    ['@gpu', 'gpu[01-02]   2   unknown   gpu   demo   compute,gpu\n'],
    ['@compute!n*', 'gpu[01-02]   2   unknown   gpu   demo   compute,gpu\n'],
    ['@all&login*', 'login1   1   unknown   base   demo   -\n'],
  ])('lists %s', async (nodes, rows) => {
    expect(await ran(['node', 'ls', nodes])).toEqual(
      printed(`NODES   COUNT   STATE   IMAGE   CLUSTER   GROUPS\n${rows}`),
    )
  })

  it('does not complain about a reader that has seen enough', async () => {
    const script = 'set -o pipefail; muster node ls | head -1; muster node ls -l | true'
    expect(await run('bash', ['-c', script], { env: lab.server.env })).toEqual({
      status: 0,
      stdout: 'NODES        COUNT   STATE     IMAGE            CLUSTER   GROUPS\n',
      stderr: '',
    })
  })

  it('lists one node a line', async () => {
    expect(await ran('node ls -l n[001-002],gpu01')).toEqual(
      printed(`NODE    ADDRESS     STATE     IMAGE            CLUSTER   GROUPS
gpu01   -           unknown   gpu              demo      compute,gpu
n001    10.77.1.1   unknown   compute@stable   demo      compute
n002    10.77.1.2   unknown   compute@stable   demo      compute
`),
    )
  })

  it('does not list a node there is not', async () => {
    expect(await ran('node ls n999')).toEqual(
      failed(1, 'error: no such node: n999\nhint:  list the nodes with: muster node ls\n'),
    )
  })

  it('shows one', async () => {
    expect(await ran('node show gpu01')).toEqual(
      printed(`gpu01  desired state of revision 1
PATH           VALUE
cluster        demo
groups         [compute, gpu]
domain         demo.cluster
boot.image     gpu
boot.args      [console=ttyS0,115200, nouveau.modeset=0]
vars.channel   stable
vars.gres      gpu:4

observed: nothing yet
`),
    )
    expect(await ran('node show n999')).toEqual(
      failed(1, 'error: no node is named n999\nhint:  list the nodes with: muster node ls\n'),
    )
  })

  it('lists groups and shows one', async () => {
    expect(await ran('group ls')).toEqual(
      printed(`GROUP     COUNT   NODES
compute   6       gpu[01-02],n[001-004]
gpu       2       gpu[01-02]
`),
    )
    expect(await ran('group show gpu')).toEqual(printed('gpu: gpu[01-02] (2)\n'))
    expect(await ran('group show gpus')).toEqual(
      failed(
        1,
        'error: no node is in a group gpus — did you mean gpu?\nhint:  list the groups with: muster group ls\n',
      ),
    )
  })
})

describe('explain', () => {
  const SUMMARY = `PATH           VALUE                                       FROM                LAYER
cluster        demo                                        site.yaml:2         cluster demo
groups         [compute, gpu]                              nodes.yaml:8        node gpu[01-02]
domain         demo.cluster                                site.yaml:3         site
boot.image     gpu                                         groups/gpu.yaml:3   group gpu
boot.args      [console=ttyS0,115200, nouveau.modeset=0]   groups/gpu.yaml:4   group gpu
vars.channel   stable                                      site.yaml:12        defaults
vars.gres      gpu:4                                       groups/gpu.yaml:5   group gpu
`
  const STORY = `boot.image = gpu
  from        groups/gpu.yaml:3       group gpu
  overrides   groups/compute.yaml:3   group compute   compute@{{ vars.channel }}
  overrides   site.yaml:10            defaults        base

boot.args = [console=ttyS0,115200, nouveau.modeset=0]
  from         groups/gpu.yaml:4   group gpu
  appends to   site.yaml:11        defaults    [console=ttyS0,115200]
`

  it('says the same from the server and from the files', async () => {
    for (const options of [{}, { cwd: lab.site }, { env: { MUSTER_SITE: lab.site } }]) {
      expect(await ran('explain gpu01', options)).toEqual(printed(SUMMARY))
      expect(await ran('explain gpu01 boot', options)).toEqual(printed(STORY))
    }
  })

  it('shows the text a template came of', async () => {
    expect(await ran('explain n001 boot.image')).toEqual(
      printed(`boot.image = compute@stable
  from        groups/compute.yaml:3   group compute   compute@{{ vars.channel }}
  overrides   site.yaml:10            defaults        base
`),
    )
  })

  it('knows what was meant', async () => {
    expect(await ran('explain gpu01 boot.imag')).toEqual(
      failed(
        1,
        'error: gpu01 has no value boot.imag — did you mean boot.image?\nhint:  leave the path out to see every value\n',
      ),
    )
    expect(await ran('explain n999')).toEqual(
      failed(1, 'error: no node is named n999\nhint:  list the nodes with: muster node ls\n'),
    )
  })
})

describe('the files of the site', () => {
  it('are right', async () => {
    expect(await ran('site check site')).toEqual(printed(''))
    expect(await ran('site check', { cwd: join(lab.site, 'groups') })).toEqual(printed(''))
  })

  it('say all that a node gets', async () => {
    expect(await ran('site show gpu01 --site site')).toEqual(
      printed(`cluster: demo
groups:
  - compute
  - gpu
domain: demo.cluster
boot:
  image: gpu
  args:
    - console=ttyS0,115200
    - nouveau.modeset=0
vars:
  channel: stable
  gres: gpu:4
`),
    )
  })

  it('have schemas', async () => {
    const { stdout } = await lab.muster('site schema group')
    expect(JSON.parse(stdout)).toMatchObject({ title: 'Muster: group', type: 'object' })
    const { status, stderr } = await lab.muster('site schema --write schemas')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '6 schemas written to schemas\n' })
    await stat(join(lab.dir, 'schemas/nodes.json'))
  })
})

describe('a change', () => {
  it('is a commit by whom the server knows', async () => {
    expect(await ran('node set n001 boot.root=disk')).toEqual(
      printed(`nodes.yaml: committed as c0ffee0000 "Set boot.root of n001"
next: muster site diff, then muster site apply
`),
    )
    expect(await git(lab.site, 'log', '-1', '--format=%an: %s')).toBe('root: Set boot.root of n001\n')
  })

  it('is shown, with an exit status for scripts', async () => {
    const shown = `n001   boot.root   + disk   nodes.yaml:14
nothing reboots by itself; to make it the desired state: muster site apply
`
    expect(await ran('site diff')).toEqual(printed(shown))
    expect(await ran('site diff --exit-code')).toEqual({ ...printed(shown), status: 1 })
  })

  it('is compared with a commit without a server', async () => {
    const options = { cwd: lab.site, env: { MUSTER_SERVER: '/nonexistent' } }
    expect(await ran('site diff --against HEAD~1', options)).toEqual(
      printed('n001   boot.root   + disk   nodes.yaml:14\n'),
    )
    expect(await ran('site diff --against HEAD --exit-code', options)).toEqual(printed('no difference\n'))
    expect((await lab.muster('site diff --against HEAD~1 --exit-code', options)).status).toBe(1)
    expect(await lab.muster('site diff --against nope', options)).toEqual({
      status: 2,
      stdout: '',
      stderr: 'error: nope is no commit of this repository\nhint:  see git log\n',
    })
  })

  it('is applied', async () => {
    expect(await ran('site apply --yes')).toEqual(
      printed('n001   boot.root   + disk   nodes.yaml:14\ngeneration 2 applied: commit c0ffee0000, 1 node changed\n'),
    )
  })

  it('is applied at once with --apply', async () => {
    expect(await ran('node add n005 groups=[compute] --apply')).toEqual(
      printed(`nodes.yaml: committed as c0ffee0000 "Add n005"
+ n005
generation 3 applied: commit c0ffee0000, 1 node changed
`),
    )
  })

  it('is in the log', async () => {
    expect(await ran('site log')).toEqual(
      printed(`GENERATION   COMMIT   NODES   APPLIED   BY   AUTHOR   SUBJECT
3   c0ffee0000   1   0s ago   root   root   Add n005
2   c0ffee0000   1   0s ago   root   root   Set boot.root of n001
1   c0ffee0000   7   0s ago   root   Ada   First
`),
    )
    expect(await ran('site log -n 1')).toEqual(
      printed(
        'GENERATION   COMMIT   NODES   APPLIED   BY   AUTHOR   SUBJECT\n3   c0ffee0000   1   0s ago   root   root   Add n005\n',
      ),
    )
  })

  it('can be taken back: the one before, or any', async () => {
    expect(await ran('site revert --yes')).toEqual(
      printed('- n005\ngeneration 4 applied: commit c0ffee0000, 1 node changed\n'),
    )
    expect(await ran('site revert 1 --yes')).toEqual(
      printed('n001   boot.root   − disk   site.yaml:9\ngeneration 5 applied: commit c0ffee0000, 1 node changed\n'),
    )
    expect(await ran('site revert 99 --yes')).toEqual(
      failed(1, 'error: there is no generation 99\nhint:  list them with: muster site log\n'),
    )
    expect(await git(lab.site, 'diff', 'HEAD~4')).toBe('')
    expect(await git(lab.site, 'log', '--format=%s', '-2')).toBe('Revert to generation 1\nRevert to generation 2\n')
  })

  it('that is not committed is refused, or taken when one says so', async () => {
    await writeFile(join(lab.site, 'groups/spare.yaml'), 'vars: { spare: true }\n')
    expect(await ran('site apply --yes')).toEqual(
      failed(
        1,
        'error: the site has changes that are not committed: groups/spare.yaml\nhint:  commit the changes, or say --allow-dirty\n',
      ),
    )
    expect(await ran('site apply --yes --allow-dirty')).toEqual(
      printed('no difference\ngeneration 6 applied: commit c0ffee0000 and uncommitted changes, 0 nodes changed\n'),
    )
    await git(lab.site, 'clean', '--quiet', '--force')
    expect(await ran('site apply --yes')).toEqual(
      printed('no difference\ngeneration 7 applied: commit c0ffee0000, 0 nodes changed\n'),
    )
  })
})

describe('what happened', () => {
  it('is shown, oldest first', async () => {
    expect(await ran('events -n 4 --after 0')).toEqual(
      printed(`     1  0000-00-00T00:00:00.000Z  site.applied    root  gpu[01-02],login1,n[001-004]  generation 1 First
     2  0000-00-00T00:00:00.000Z  site.edited     root  Set boot.root of n001
     3  0000-00-00T00:00:00.000Z  site.applied    root  n001  generation 2 Set boot.root of n001
     4  0000-00-00T00:00:00.000Z  site.edited     root  Add n005
`),
    )
  })

  it('is shown from the end unless one says where to begin', async () => {
    const all = await lab.muster('events')
    const last = await lab.muster('events -n 2')
    expect(last.stdout.split('\n')).toEqual(all.stdout.split('\n').slice(-3))
  })

  it('is chosen by kind', async () => {
    const { stdout } = await lab.muster(['events', '--kind', 'site.*'])
    expect(new Set(stdout.match(/\S+\.\S+(?= +root)/g))).toEqual(new Set(['site.applied', 'site.edited']))
    const applied = await lab.muster('events --kind site.applied --after 3 -n 1')
    expect(columns(applied.stdout)).toBe(
      columns('     5  0000-00-00T00:00:00.000Z  site.applied    root  n005  generation 3 Add n005\n'),
    )
  })

  it('is shown with who did it and from where, newest first', async () => {
    const { stdout } = await lab.muster('audit -n 2')
    expect(columns(stdout)).toBe(
      columns(`TIME                       WHO    FROM          WHAT           NODES   DETAIL
0000-00-00T00:00:00.000Z   root   unix socket   site.applied   -   generation 7 Revert to generation 1
0000-00-00T00:00:00.000Z   root   unix socket   site.applied   -   generation 6 Revert to generation 1
`),
    )
  })
})

describe('tokens', () => {
  it('are shown once, and then only named', async () => {
    const made = await lab.muster('token create ci --role operator --expires 12h')
    expect(made.status).toBe(0)
    expect(made.stdout).toMatch(/^muster_[0-9a-f]{12}_[\w-]{43}\n$/)
    expect(normalise(made.stderr)).toBe(
      'operator until 0000-00-00T00:00:00.000Z; it is not shown again. Use it as MUSTER_TOKEN.\n',
    )
    const listed = await lab.muster('token ls')
    expect(columns(listed.stdout)).toBe(
      columns(`ID             NAME   ROLE       MADE     BY     EXPIRES
1d1d1d1d1d1d   ci     operator   0s ago   root   0000-00-00T00:00:00.000Z
`),
    )
    const [, id = '', secret = ''] = /^muster_([0-9a-f]{12})_(.*)\n$/.exec(made.stdout) ?? []
    const everything = [listed, await lab.muster('events --json'), await lab.muster('audit --json')]
    expect(JSON.stringify(everything)).not.toContain(secret)
    expect(await ran(`token revoke ${id}`)).toEqual(printed(`token 1d1d1d1d1d1d revoked\n`.replace('1d1d1d1d1d1d', id)))
    expect(await ran('token ls')).toEqual(printed('ID   NAME   ROLE   MADE   BY   EXPIRES\n'))
    expect(await ran(`token revoke ${id}`)).toEqual(
      failed(1, `error: there is no token 1d1d1d1d1d1d\nhint:  list them with: muster token ls\n`),
    )
  })
})

describe('following events', () => {
  it('shows what was and what comes, and ends with the server', async () => {
    await using server = await serve(lab.site, join(lab.dir, 'data2'))
    const env = server.env
    await lab.muster('token create early', { env })
    await using follow = start(MUSTER, ['events', '--follow', '--after', '0'], { env })
    await follow.says(/ 1 .*token\.created +root +early viewer\n/)
    await using json = start(MUSTER, ['events', '-f', '--after', '0', '--kind', 'site.*', '--json'], { env })
    await lab.muster('site apply --yes', { env })
    await follow.says(/ 2 .*site\.applied +root .*generation 1 /)
    await json.says('\n')
    expect(JSON.parse(json.stdout)).toMatchObject({ revision: 2, kind: 'site.applied', actor: 'root' })
    expect(await server.stop()).toBe(0)
    expect(await follow.ended).toBe(3)
    expect(follow.stderr).toBe(
      'error: the server closed the stream\nhint:  is it running? start it with: muster serve\n',
    )
    expect(await json.ended).toBe(3)
  })
})

describe('a backup', () => {
  it('is saved, readable by nobody else', async () => {
    expect(await ran('backup state.db')).toEqual(
      printed('saved to state.db; put it back with: muster restore state.db\n'),
    )
    expect((await stat(join(lab.dir, 'state.db'))).mode & 0o777).toBe(0o600)
  })

  it('is not put under a running server', async () => {
    expect(await ran('restore state.db --data data --yes')).toEqual(
      failed(
        1,
        `error: ${lab.server.data}/state.db: is in use\nhint:  another muster uses this data directory; stop it first\n`,
      ),
    )
  })

  it('brings everything back', async () => {
    const before = await lab.muster('node ls -o json')
    expect(await lab.server.stop()).toBe(0)
    expect(await ran('restore nothing.db --data data --yes')).toEqual(
      failed(1, `error: ${lab.dir}/nothing.db: there is no such file\nhint:  choose a file made by: muster backup\n`),
    )
    expect(await ran('restore state.db --data data')).toEqual(
      failed(
        1,
        'error: not confirmed: replace the state in data by state.db?\nhint:  not a terminal: say --yes to go on\n',
      ),
    )
    expect(await ran('restore state.db --data data --yes')).toEqual(
      printed(
        'state.db restored into data; what was there is kept as state.db.before-restore\nnext: start the server\n',
      ),
    )
    await using server = await serve(lab.site, join(lab.dir, 'data'))
    expect(await lab.muster('node ls -o json', { env: server.env })).toEqual(before)
    expect((await lab.muster('site log', { env: server.env })).stdout).toMatch(/\n7 .*\n6 .*\n5 /)
  })

  it('says nothing of an old state where there was none', async () => {
    expect(await ran('restore state.db --data fresh --yes')).toEqual(
      printed('state.db restored into fresh\nnext: start the server\n'),
    )
  })
})
