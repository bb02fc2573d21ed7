import { chmod, rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Built, type Lab, makeLab, writeTree } from './testing.ts'

const recipe = ({ first = 'echo 1', second = 'echo 2', more = 'outputs: [squashfs]' } = {}): string => `
from: { image: base }
${more}
files: { /etc/motd: motd.j2 }
steps:
  - { name: first, run: ${first} >/etc/first }
  - { name: script, script: script.sh }
  - { name: second, run: ${second} >/etc/second }
prune: [/bin/yes]
`

const FILES = { 'motd.j2': 'welcome to {{ vars.channel }}\n', 'script.sh': 'echo script >/etc/script\n' }

let lab: Lab
let start: Built

beforeAll(async () => {
  lab = await makeLab({ 'site.yaml': 'site: t\ndefaults: { vars: { channel: stable } }\n' })
  await lab.recipe('base', 'from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ run: touch /base }]\n')
  await lab.recipe('top', recipe(), FILES)
  start = await lab.build('top')
})
afterAll(() => lab[Symbol.asyncDispose]())

/** The stages that had to be done; everything before the first of them must have been cached. */
const madeBy = async (): Promise<{ made: string[]; built: Built }> => {
  const built = await lab.build('top')
  const stages = Object.entries(built.stages)
  const first = stages.findIndex(([, how]) => how === 'made')
  expect(stages.slice(0, first).every(([, how]) => how === 'cached')).toBe(true)
  return { made: stages.slice(Math.max(0, first)).map(([title]) => title), built }
}

describe('of an image that was built before', () => {
  it('the first time, everything is made', () => {
    expect(start.stages).toEqual({
      'from directory': 'made',
      'run touch /base': 'made',
      files: 'made',
      first: 'made',
      script: 'made',
      second: 'made',
      prune: 'made',
      pack: 'made',
    })
    expect(start.isUnchanged).toBe(false)
  })

  it('nothing is done when nothing has changed', async () => {
    expect(await lab.build('top')).toMatchObject({ digest: start.digest, isUnchanged: true, stages: {} })
  })

  it('nothing is done when files beside the recipe change that are not its inputs', async () => {
    await writeTree(lab.site, { 'images/top/README.md': 'unrelated\n' })
    expect(await lab.build('top')).toMatchObject({ digest: start.digest, isUnchanged: true })
  })

  it.each([
    ['the last step', { second: 'echo two' }, ['second', 'prune', 'pack']],
    ['the first step', { first: 'echo one' }, ['first', 'script', 'second', 'prune', 'pack']],
    ['an output', { more: 'outputs: [squashfs, cpio.gz]' }, ['pack']],
    ['a limit', { more: 'outputs: [squashfs]\nlimits: { size: 100 MB }' }, ['pack']],
  ])('%s that has changed is done again, with what comes after it', async (_, change, made) => {
    await lab.recipe('top', recipe(change))
    expect((await madeBy()).made).toEqual(made)
  })

  it('going back finds everything as it was, and makes that image the newest again', async () => {
    await lab.recipe('top', recipe())
    const back = await lab.build('top')
    expect(back).toMatchObject({ digest: start.digest, isUnchanged: true })
    const { stdout } = await lab.muster(['image', 'show', 'top', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ digest: start.digest })
  })

  it('a script that has changed is run again', async () => {
    await writeTree(lab.site, { 'images/top/script.sh': 'echo other >/etc/script\n' })
    const { made, built } = await madeBy()
    expect(made).toEqual(['script', 'second', 'prune', 'pack'])
    expect(await lab.cat(built, 'etc/script')).toBe('other\n')
  })

  it('a value of the site counts where there are templates, and nowhere else', async () => {
    const base = await lab.build('base')
    await writeTree(lab.site, { 'site.yaml': 'site: t\ndefaults: { vars: { channel: next } }\n' })
    expect(await lab.build('base')).toMatchObject({ digest: base.digest, isUnchanged: true })
    const { made, built } = await madeBy()
    expect(made).toEqual(['files', 'first', 'script', 'second', 'prune', 'pack'])
    expect(await lab.cat(built, 'etc/motd')).toBe('welcome to next\n')
  })

  it('a value of the site that no template uses counts nowhere', async () => {
    const before = await lab.build('top')
    await writeTree(lab.site, { 'site.yaml': 'site: t\ndefaults: { vars: { channel: next, other: 1 } }\n' })
    expect(await lab.build('top')).toMatchObject({ digest: before.digest, isUnchanged: true })
  })

  it('a file whose executable bit has changed counts', async () => {
    await chmod(lab.path('site/images/top/motd.j2'), 0o755)
    const { made, built } = await madeBy()
    expect(made).toEqual(['files', 'first', 'script', 'second', 'prune', 'pack'])
    expect((await lab.list(built))['/etc/motd']).toBe('-rwxr-xr-x 0/0')
  })

  it('its base that has changed counts', async () => {
    await lab.recipe(
      'base',
      'from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ run: touch /other }]\n',
    )
    const { made, built } = await madeBy()
    expect(made).toEqual(['run touch /other', 'files', 'first', 'script', 'second', 'prune', 'pack'])
    expect(Object.keys(await lab.list(built))).not.toContain('/base')
  })

  it('what is gone from the cache is made again, to the same bytes', async () => {
    const before = await lab.build('top')
    await rm(lab.path('data/images'), { recursive: true })
    expect((await lab.build('top')).digest).toBe(before.digest)
  })
})

it('a step knows which image it is in, also where another has the same steps', async () => {
  const said: string[] = []
  for (const name of ['one', 'other']) {
    await lab.recipe(
      name,
      'from: { image: base }\noutputs: [squashfs]\nsteps: [{ run: echo $MUSTER_IMAGE >/etc/name }]\n',
    )
    await lab.build(name)
    said.push((await lab.muster(['image', 'shell', name, '--', 'cat', '/etc/name'])).stdout)
  }
  expect(said).toEqual(['one\n', 'other\n'])
})
