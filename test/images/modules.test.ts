import { chmod, mkdir, rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MUSTER, git, run } from '../cli/testing.ts'
import { TINY_RPMS, filePackage, rpmRepository } from './rpm.ts'
import { type Lab, errorOf, makeLab, tinyRoot, writeTree } from './testing.ts'

/** A module that only leaves its name. */
const module = (name: string, yaml = ''): Record<string, string> => ({
  [`modules/${name}/module.yaml`]: yaml,
  [`modules/${name}/install.sh`]: `echo ${name} >>/etc/modules\n`,
})

const SITE = {
  ...module('scheduler', 'requires: [limits, shell]\n'),
  ...module('limits', 'requires: [shell]\nabout: What jobs may use\n'),
  ...module('shell'),
  ...module('tools', 'packages: { redhat: [tool], debian: [tool-for-debian], all: [common] }\n'),
}

let lab: Lab
beforeAll(async () => {
  lab = await makeLab(SITE)
})
afterAll(() => lab[Symbol.asyncDispose]())

describe('modules', () => {
  it('come each once, after those they require, else in the order of the recipe', async () => {
    const { stdout } = await lab.muster(['module', 'plan', 'scheduler', 'shell', '--json'])
    expect((JSON.parse(stdout) as { name: string }[]).map(one => one.name)).toEqual(['shell', 'limits', 'scheduler'])
    const steps = 'steps: [{ modules: [scheduler] }, { run: echo step >>/etc/modules }, { modules: [limits, shell] }]'
    await lab.recipe('ordered', `from: { directory: ../../../root }\noutputs: [squashfs]\n${steps}\n`)
    const built = await lab.build('ordered')
    expect(await lab.cat(built, 'etc/modules')).toBe('shell\nlimits\nscheduler\nstep\n')
  })

  it('are listed with where they come from, those that come with Muster too', async () => {
    const { stdout } = await lab.muster(['module', 'ls'])
    expect(stdout.split('\n').map(line => line.replaceAll(/ {2,}/g, '  ').trim())).toEqual([
      'MODULE  FROM  REQUIRES  ABOUT',
      'limits  site  shell  What jobs may use',
      'muster-agent  muster  -  What a node says of itself when it has booted',
      'scheduler  site  limits, shell',
      'shell  site  -',
      'tools  site  -',
      '',
    ])
  })

  it('are completed, those that come with Muster too', async () => {
    const words = ['module', 'plan', '--site', lab.site, '--data', lab.data]
    const { stdout } = await run(MUSTER, ['complete', '--', ...words, ''])
    expect(stdout.split('\n')).toEqual(['limits', 'muster-agent', 'scheduler', 'shell', 'tools', ''])
  })

  it('are planned as a table', async () => {
    const { stdout } = await lab.muster(['module', 'plan', 'limits'])
    expect(stdout.split('\n').map(line => line.replaceAll(/ {2,}/g, '  ').trim())).toEqual([
      'MODULE  FROM  REQUIRES  ABOUT',
      'shell  site  -',
      'limits  site  shell  What jobs may use',
      '',
    ])
  })

  it('get the packages of the family the image is of', async () => {
    const packages = [...TINY_RPMS, filePackage('tool'), filePackage('common'), filePackage('tool-for-debian')]
    await rpmRepository(lab.path('rpms'), packages)
    const repositories = `repositories: { tiny: { url: "file://${lab.path('rpms')}", trusted: true } }`
    const recipe = `from: { dnf: 9 }\npackages: [tiny-shell]\n${repositories}\noutputs: [squashfs]\n`
    await lab.recipe('family', `${recipe}steps: [{ modules: [tools] }]\n`)
    const built = await lab.build('family')
    expect(Object.keys(built.stages)).toEqual(['packages', 'module tools', 'pack'])
    const brought = Object.keys(await lab.list(built)).filter(path => path.startsWith('/opt/'))
    expect(brought).toEqual(['/opt/common', '/opt/tool'])
  })
})

describe('the agent that comes with Muster', () => {
  it.each([
    [
      'debian',
      { 'etc/os-release': 'ID=debian\nVERSION_ID=12\n', 'lib/systemd/systemd': '' },
      '/etc/systemd/system/multi-user.target.wants/muster-agent.service',
    ],
    [
      'rocky',
      { 'etc/os-release': 'ID=rocky\nID_LIKE="rhel fedora"\nVERSION_ID=9\n', 'usr/lib/systemd/systemd': '' },
      '/etc/systemd/system/multi-user.target.wants/muster-agent.service',
    ],
    [
      'alpine',
      { 'etc/os-release': 'ID=alpine\nVERSION_ID=3.20\n', 'etc/init.d/x': '', 'etc/runlevels/boot/x': '' },
      '/etc/runlevels/default/muster-agent',
    ],
  ])('is started at boot on %s', async (name, files, started) => {
    await tinyRoot(lab.path(`root-${name}`), files)
    const recipe = `from: { directory: ../../../root-${name} }\noutputs: [squashfs]\n`
    await lab.recipe(`on-${name}`, `${recipe}steps: [{ modules: [muster-agent] }]\n`)
    const built = await lab.build(`on-${name}`)
    const list = await lab.list(built)
    expect(list['/usr/lib/muster/muster-agent']).toBe('-rwxr-xr-x 0/0')
    expect(list[started]).toMatch(/^lrwxrwxrwx 0\/0 -> /)
    expect(built.manifest.os?.id).toBe(name)
  })
})

describe('modules of a repository that site.yaml pins', () => {
  let commit: string
  beforeAll(async () => {
    const upstream = lab.path('upstream')
    await mkdir(upstream)
    await writeTree(upstream, module('shared'))
    await git(upstream, 'init', '--quiet', '--initial-branch=main')
    await git(upstream, 'add', '.')
    await git(upstream, 'commit', '--quiet', '--message', 'One')
    commit = (await git(upstream, 'rev-parse', 'HEAD')).trim()
    await writeTree(upstream, { 'modules/shared/install.sh': 'echo newer >>/etc/modules\n' })
    await git(upstream, 'commit', '--quiet', '--all', '--message', 'Two')
    const source = `{ git: "file://${upstream}", commit: ${commit}, path: modules }`
    await writeTree(lab.site, { 'site.yaml': `site: t\nmodules: { common: ${source} }\n` })
    await lab.recipe(
      'pinned',
      'from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ modules: [shared, shell] }]\n',
    )
  })

  it('are those of that commit', async () => {
    const built = await lab.build('pinned')
    expect(await lab.cat(built, 'etc/modules')).toBe('shared\nshell\n')
    const { stdout } = await lab.muster(['module', 'ls', '--json'])
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ name: 'shared', origin: 'common' }))
  })

  it('need the repository no more once they were fetched', async () => {
    await rm(lab.path('upstream'), { recursive: true })
    await chmod(lab.path('site/modules/shell/install.sh'), 0o755)
    expect((await lab.build('pinned')).stages).toEqual({
      'from directory': 'cached',
      'module shared': 'cached',
      'module shell': 'made',
      pack: 'made',
    })
  })

  it('that are gone before they were fetched are an error that names the source', async () => {
    const ran = await lab.elsewhere('other').fails('pinned')
    expect(errorOf(ran)).toBe(`source common: file://${lab.path('upstream')} cannot be fetched`)
  })
})
