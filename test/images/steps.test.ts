import { chmod, readdir } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MUSTER, terminal } from '../cli/testing.ts'
import { type Built, type Lab, errorOf, makeLab, writeTree } from './testing.ts'

const RECIPE = `
from: { directory: ../../../root }
outputs: [squashfs]
vars: { greeting: hello }
files: { /etc/placed: placed }
steps:
  - run: |
      # The first line that does something is its title.
      echo "{{ vars.greeting }} from $MUSTER_IMAGE on $MUSTER_ARCH" >/etc/run
      echo "$WHO and $GREETING" >/etc/env
    env: { WHO: ada, GREETING: "{{ vars.greeting }}" }
  - name: as it is
    script: scripts/program
    env: { NUMBER: 7 }
  - script: scripts/lines
  - ansible: play/site.yaml
    vars: { line: from ansible }
  - modules: [late, early]
  - run: cat /etc/order /etc/placed; rm /etc/placed; printf 'no newline at the end'
`

const FILES = {
  placed: 'placed\n',
  'scripts/program': '#!/bin/sh\necho "program $NUMBER $0" >>/etc/order\n',
  'scripts/lines': 'echo lines >>/etc/order\n',
  'play/site.yaml': `
- hosts: all
  gather_facts: false
  tasks:
    - raw: echo "{{ line }} on {{ inventory_hostname }}" >>/etc/order
    - raw: "{{ lookup('file', 'beside') }}"
`,
  'play/beside': 'echo beside >>/etc/order\n',
}

const MODULES = {
  'modules/early/module.yaml': 'about: Comes first\nenv: { WORD: early }\n',
  'modules/early/install.sh': 'cat beside >>/etc/order; echo "$MUSTER_MODULE $WORD $PWD" >>/etc/order\n',
  'modules/early/beside': 'beside the module\n',
  'modules/late/module.yaml': 'requires: [early]\n',
  'modules/late/install.sh': 'echo "$MUSTER_MODULE" >>/etc/order\n',
}

let lab: Lab
let built: Built

beforeAll(async () => {
  lab = await makeLab(MODULES)
  await lab.recipe('demo', RECIPE, FILES)
  await chmod(lab.path('site/images/demo/scripts/lines'), 0o644)
  built = await lab.build('demo')
})
afterAll(() => lab[Symbol.asyncDispose]())

describe('steps', () => {
  it('are done in the order of the recipe, after the files, each under a name of its own', () => {
    expect(Object.keys(built.stages)).toEqual([
      'from directory',
      'files',
      'run echo "hello from $MUSTER_IMAGE …',
      'as it is',
      'script scripts/lines',
      'ansible site.yaml',
      'module early',
      'module late',
      'run cat /etc/order /etc/placed; rm …',
      'pack',
    ])
  })

  it('know the image they work on and what the recipe tells them', async () => {
    expect(await lab.cat(built, 'etc/run')).toBe(`hello from demo on ${built.manifest.arch}\n`)
    expect(await lab.cat(built, 'etc/env')).toBe('ada and hello\n')
  })

  it('of all kinds work on the same root', async () => {
    expect((await lab.cat(built, 'etc/order')).split('\n')).toEqual([
      'program 7 /run/muster/program',
      'lines',
      'from ansible on demo',
      'beside',
      'beside the module',
      'early early /run/muster/module',
      'late',
      '',
    ])
    expect(Object.keys(await lab.list(built))).not.toContain('/etc/placed')
  })

  it('leave nothing of themselves in the image', async () => {
    const list = await lab.list(built)
    const traces = Object.keys(list).filter(path => /muster|ansible|^\/(tmp|run|dev|proc)\/./.test(path))
    expect(traces).toEqual([])
    expect(list['/proc']).toBe('drwxr-xr-x 0/0')
  })
})

describe('a playbook', () => {
  it('runs in an image and a group with names that Ansible has a meaning for', async () => {
    await writeTree(lab.site, { 'groups/all.yaml': '', 'groups/ungrouped.yaml': '' })
    const play =
      '- hosts: all\n  gather_facts: false\n  tasks: [{ raw: "echo played on {{ ansible_host }} >/etc/played" }]\n'
    const recipe = 'from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ ansible: play/site.yaml }]\n'
    for (const [name, group] of [
      ['all', '[]'],
      ['all', 'all'],
      ['played', '[all, ungrouped]'],
      ['ungrouped', '[]'],
    ] as const) {
      await lab.recipe(name, `${recipe}group: ${group}\n`, { 'play/site.yaml': play })
      expect(await lab.cat(await lab.build(name), 'etc/played')).toBe('played on /target\n')
    }
  })
})

describe('the log of a build', () => {
  it('has every stage, every command and what it printed', async () => {
    const { stdout, status } = await lab.muster(['image', 'log', 'demo'])
    expect(status).toBe(0)
    expect(stdout).toContain('=== demo: as it is\n')
    expect(stdout).toContain('+ cat /etc/order /etc/placed\nprogram 7 /run/muster/program\n')
    expect(stdout).toContain('no newline at the end')
  })

  it('is still to be had when the same image was built again', async () => {
    expect((await lab.build('demo')).isUnchanged).toBe(true)
    expect((await lab.muster(['image', 'log', 'demo'])).stdout).toContain('+ cat /etc/order /etc/placed\n')
    expect((await lab.muster(['image', 'log', `demo@${built.digest}`])).stdout).toContain('+ rm /etc/placed\n')
  })
})

describe('--shell-on-failure', () => {
  const recipe = 'from: { directory: ../../../root }\nsteps: [{ run: "echo 6 >/etc/half; false" }]\n'

  it('opens a shell in the root as the step left it; the build fails all the same', async () => {
    await lab.recipe('failing', recipe)
    const words = ['image', 'build', 'failing', '--shell-on-failure', '--data', lab.data, '--site', lab.site]
    await using program = terminal(`${MUSTER} ${words.join(' ')}`)
    await program.says('this is its root')
    program.type('echo "seven is $(($(cat /etc/half) + 1))"\r')
    await program.says('seven is 7')
    program.type('exit\r')
    expect(await program.ended).toBe(1)
    expect(program.plain).toMatch(/^ {2}run echo 6 >\/etc\/half; false +failed after /m)
    expect(program.plain).toContain('error: failing: run echo 6 >/etc/half; false failed with exit status 1: false')
    expect(await readdir(lab.path('data/images/work'))).toEqual([])
  })

  it('needs a terminal', async () => {
    const ran = await lab.fails('failing', ['--shell-on-failure'])
    expect([ran.status, errorOf(ran)]).toEqual([2, '--shell-on-failure needs a terminal'])
  })
})
