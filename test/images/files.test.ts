import { chmod, chown, mkdir, symlink } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { git } from '../cli/testing.ts'
import { type Built, type Lab, makeLab } from './testing.ts'

const RECIPE = `
from: { directory: ../../../root }
outputs: [squashfs]
group: [compute]
vars: { channel: recipe, only: the recipe }
files:
  /etc/motd: motd.j2
  /etc/plain: plain
  /etc/passwd-like: { source: plain, owner: ada, group: hpc, mode: "0640" }
  /usr/bin/tool: tool
  /usr/bin/quiet: { source: tool, mode: "4711" }
  /opt/tree: tree
  /etc/group: { source: group, mode: "0600" }
  /lib/linked/file: plain
  /home/ada/.profile: { source: plain, owner: ada, group: ada }
  /var/lib/new/deep/file: plain
steps:
  - run: |
      echo "{{ vars.channel }} {{ vars.only }} {{ vars.default }} {{ name }}@{{ site }}" >/etc/vars
prune: [ "{{ vars.pruned }}", /etc/plain ]
`

const FILES = {
  'motd.j2': '{% for one in vars.list %}{{ loop.index }} {{ one }}\n{% endfor %}welcome to {{ vars.channel }}\n',
  plain: '{{ this is no template }}\n',
  tool: '#!/bin/sh\necho tool\n',
  group: 'root:x:0:\nother:x:5:\n',
  'tree/etc/conf.j2': 'channel = {{ vars.channel }}\n',
  'tree/bin/program': '#!/bin/sh\n',
  'tree/empty/.keep': '',
}

const SITE = {
  'site.yaml': 'site: t\ndefaults: { vars: { channel: defaults, default: from the site, list: [a] } }\n',
  'groups/hardware.yaml': 'vars: { pruned: [/bin/yes] }\n',
  'groups/compute.yaml': 'groups: [hardware]\nvars: { channel: group, pruned+: [/bin/wget, "/usr/sh*"], list+: [b] }\n',
}

let lab: Lab
let built: Built
let list: Readonly<Record<string, string>>

beforeAll(async () => {
  lab = await makeLab(SITE)
  await mkdir(lab.path('root/usr/lib'), { recursive: true })
  await symlink('usr/lib', lab.path('root/lib'))
  await mkdir(lab.path('root/home/ada'), { mode: 0o700 })
  await chmod(lab.path('root/home/ada'), 0o700)
  await chown(lab.path('root/home/ada'), 1000, 1000)
  await lab.recipe('all', RECIPE, FILES)
  await symlink('program', lab.path('site/images/all/tree/bin/alias'))
  await symlink('/nowhere', lab.path('site/images/all/tree/dangling'))
  await git(lab.site, 'init', '--quiet', '--initial-branch=main')
  await git(lab.site, 'add', '.')
  await git(lab.site, 'commit', '--quiet', '--message', 'First')
  built = await lab.build('all')
  list = await lab.list(built)
})
afterAll(() => lab[Symbol.asyncDispose]())

describe('files', () => {
  it('that end in .j2 are templates, others are taken as they are', async () => {
    expect(await lab.cat(built, 'etc/motd')).toBe('1 a\n2 b\nwelcome to group\n')
    expect(await lab.cat(built, 'etc/passwd-like')).toBe('{{ this is no template }}\n')
  })

  it('have the owner, the group and the mode that the recipe says, by the names the image knows', () => {
    expect(list['/etc/motd']).toBe('-rw-r--r-- 0/0')
    expect(list['/etc/passwd-like']).toBe('-rw-r----- 1000/900')
    expect(list['/usr/bin/tool']).toBe('-rwxr-xr-x 0/0')
    expect(list['/usr/bin/quiet']).toBe('-rws--x--x 0/0')
    expect(list['/etc/group']).toBe('-rw------- 0/0')
  })

  it('may be whole folders, with templates, programs and links', async () => {
    expect(await lab.cat(built, 'opt/tree/etc/conf')).toBe('channel = group\n')
    const tree = Object.entries(list).filter(([path]) => path.startsWith('/opt'))
    expect(Object.fromEntries(tree)).toEqual({
      '/opt': 'drwxr-xr-x 0/0',
      '/opt/tree': 'drwxr-xr-x 0/0',
      '/opt/tree/bin': 'drwxr-xr-x 0/0',
      '/opt/tree/bin/alias': 'lrwxrwxrwx 0/0 -> program',
      '/opt/tree/bin/program': '-rwxr-xr-x 0/0',
      '/opt/tree/dangling': 'lrwxrwxrwx 0/0 -> /nowhere',
      '/opt/tree/empty': 'drwxr-xr-x 0/0',
      '/opt/tree/empty/.keep': '-rw-r--r-- 0/0',
      '/opt/tree/etc': 'drwxr-xr-x 0/0',
      '/opt/tree/etc/conf': '-rw-r--r-- 0/0',
    })
  })

  it('go where the links of the image lead, and leave what is above them as it was', () => {
    expect(list['/lib']).toBe('lrwxrwxrwx 0/0 -> usr/lib')
    expect(list['/usr/lib/linked/file']).toBe('-rw-r--r-- 0/0')
    expect(list['/home/ada']).toBe('drwx------ 1000/1000')
    expect(list['/home/ada/.profile']).toBe('-rw-r--r-- 1000/1000')
    expect(list['/var/lib/new/deep']).toBe('drwxr-xr-x 0/0')
  })
})

describe('values of the site', () => {
  it('come from the recipe, then from the defaults, then from the groups it names', async () => {
    expect(await lab.cat(built, 'etc/vars')).toBe('group the recipe from the site all@t\n')
  })

  it('that are lists add to the list they stand in', () => {
    const gone = ['/bin/yes', '/bin/wget', '/usr/share', '/etc/plain'].filter(path => path in list)
    expect(gone).toEqual([])
    expect(list['/usr/bin']).toBe('drwxr-xr-x 0/0')
  })
})

const release = async (one: Built) =>
  Object.fromEntries(
    (await lab.cat(one, 'etc/image-release'))
      .trim()
      .split('\n')
      .map(line => line.split('=')),
  )

describe('/etc/image-release', () => {
  it('says which recipe at which commit it is, and that something was not committed: the lock', async () => {
    const commit = (await git(lab.site, 'rev-parse', 'HEAD')).trim()
    expect(await release(built)).toEqual({
      IMAGE_NAME: 'all',
      IMAGE_COMMIT: `${commit}+dirty`,
      IMAGE_BRANCH: 'main',
      IMAGE_INPUTS: built.manifest.inputs,
      IMAGE_TIME: built.manifest.created,
    })
    expect(built.manifest.source).toEqual({ commit, branch: 'main', dirty: true })
  })

  it('names the commit when all is committed, and does not change with commits that are none of its business', async () => {
    await git(lab.site, 'add', '.')
    await git(lab.site, 'commit', '--quiet', '--message', 'Lock')
    const commit = (await git(lab.site, 'rev-parse', 'HEAD')).trim()
    const committed = await lab.build('all')
    expect(await release(committed)).toMatchObject({ IMAGE_COMMIT: commit, IMAGE_TIME: committed.manifest.created })
    await exec('touch', [lab.path('site/README.md')])
    await git(lab.site, 'add', '.')
    await git(lab.site, 'commit', '--quiet', '--message', 'Unrelated')
    expect(await lab.build('all')).toMatchObject({ digest: committed.digest, isUnchanged: true })
  })
})
