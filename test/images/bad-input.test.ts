/** Recipes that cannot work: each a clear error, nothing published, nothing outside touched. */
import { chmod, mkdir, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { TINY_RPMS, filePackage, rpmRepository } from './rpm.ts'
import { type Files, type Lab, errorOf, hintOf, makeLab, mountsBelow, tinyRoot, writeTree } from './testing.ts'

const FROM = 'from: { directory: ../../../root }\noutputs: [squashfs]\n'

const SITE: Files = {
  'groups/compute.yaml': 'vars: { channel: stable }\n',
  'modules/a/module.yaml': 'requires: [b]\n',
  'modules/a/install.sh': '',
  'modules/b/module.yaml': '# A comment.\nrequires: [a]\n',
  'modules/b/install.sh': '',
  'modules/c/module.yaml': 'requires: [lmod]\n',
  'modules/c/install.sh': '',
  'modules/failing/module.yaml': '',
  'modules/failing/install.sh': 'echo begins\nls /nowhere\necho not reached\n',
  'bases/plain': 'echo {}\n',
  'bases/chatty': '#!/bin/sh\necho this is no JSON\n',
  'bases/broken': '#!/bin/sh\n[ "$1" = pin ] || { echo no such release >&2; exit 3; }\n',
  'bases/evil': '#!/bin/sh\n[ "$1" = pin ] || echo evil >"CANARY/evil"\n',
}

let lab: Lab
let canary: string
let names: string

beforeAll(async () => {
  lab = await makeLab()
  canary = lab.path('canary')
  await makeCanary()
  const files = Object.entries(SITE).map(([path, text]) => [path, text.replace('CANARY', canary)])
  await writeTree(lab.site, Object.fromEntries(files) as Files)
  await lab.recipe('good', FROM)
  await lab.build('good')
  names = await state()
  const packages = [...TINY_RPMS, filePackage('one', '1', { conflicts: 'two' }), filePackage('two')]
  await rpmRepository(lab.path('rpms'), packages)
})
afterAll(() => lab[Symbol.asyncDispose]())

/** A directory outside that nobody may touch. */
async function makeCanary(): Promise<void> {
  await rm(canary, { recursive: true, force: true })
  await writeTree(canary, { secret: 'of this machine\n', 'resolv.conf': '' })
}

const state = async (): Promise<string> => {
  const lists = await readdir(lab.path('data/images/names'))
  const texts = lists.map(name => readFile(lab.path('data/images/names', name), 'utf8'))
  return JSON.stringify([lists, ...(await Promise.all(texts))])
}

beforeEach(() => rm(lab.path('site/images/bad'), { recursive: true, force: true }))

afterEach(nothingTouched)

async function nothingTouched(): Promise<void> {
  expect(await state()).toBe(names)
  const found = [await readdir(canary), await readFile(`${canary}/secret`, 'utf8')]
  await makeCanary()
  expect(found).toEqual([['resolv.conf', 'secret'], 'of this machine\n'])
  expect(await readdir(lab.path('data/images/work'))).toEqual([])
  expect(await mountsBelow(lab.dir)).toEqual([])
}

describe('a recipe', () => {
  it.each([
    ['with a key nobody knows', `${FROM}package: [x]\n`, 'images/bad/image.yaml:3:1: '],
    ['with two bases', 'from: { directory: /, tar: x }\n', 'has tar and directory: it must name one base'],
    ['without a base', 'packages: [x]\n', 'from'],
    ['with a step that is two', `${FROM}steps: [{ run: a, script: b }]\n`, 'has run and script: a step is one of'],
    ['with a step that is none', `${FROM}steps: [{ name: a }]\n`, 'does nothing: a step is one of'],
    ['with a script elsewhere', `${FROM}steps: [{ script: ../x }]\n`, 'is not a path inside the folder of the recipe'],
    ['with a file elsewhere', `${FROM}files: { /etc/x: /etc/passwd }\n`, 'images/bad/image.yaml:3:'],
    ['with a target that leads out', `${FROM}files: { /etc/../../x: x }\n`, 'images/bad/image.yaml:3:'],
    ['with an option as a package', `${FROM}packages: [--allow]\n`, 'is not the name of a package'],
    ['with a size that is none', `${FROM}limits: { size: much }\n`, 'is not a size such as 900 MB or 2 GB'],
    ['with a value that is not there', `${FROM}steps: [{ run: "{{ vars.nope }}" }]\n`, 'vars.nope is not defined'],
    ['with a group that is not there', `${FROM}group: compte\n`, 'there is no group compte'],
    ['that is no YAML', 'from: {\n', 'images/bad/image.yaml:'],
  ])('%s is refused with its place', async (_, text, said) => {
    await lab.recipe('bad', text)
    const ran = await lab.fails('bad')
    expect(ran.status).toBe(1)
    expect(errorOf(ran)).toMatch(/^images\/bad\/image\.yaml has \d+ errors?$/)
    expect(ran.stderr).toContain(said)
    expect(hintOf(ran)).toBe('correct the lines named above')
  })

  it.each([
    ['a directory', 'from: { directory: nowhere }', 'from: there is no directory nowhere'],
    ['an archive', 'from: { tar: nowhere.tar }', 'from: there is no archive nowhere.tar'],
    ['a base', 'from: { gentoo: 1 }', 'from: there is no base gentoo'],
    ['a base that can be run', 'from: { plain: 1 }', 'bases/plain is not executable'],
    [
      'a keyring',
      'from: { debian: { suite: bookworm, keyring: nowhere.gpg } }',
      'images/bad/image.yaml: from.debian.keyring: there is no nowhere.gpg beside the recipe',
    ],
    ['packages for dnf', 'from: { dnf: 9 }', 'images/bad/image.yaml: an image from dnf needs packages'],
    ['a script', `${FROM}steps: [{ script: nowhere }]`, 'steps: there is no nowhere beside the recipe'],
    ['a file', `${FROM}files: { /etc/x: nowhere }`, 'files: there is no nowhere beside the recipe'],
    [
      'a way to install packages',
      `${FROM}packages: [x]`,
      'bad: packages: its base has neither apt nor rpm, so none can be installed',
    ],
    [
      'an owner',
      `${FROM}files: { /etc/x: { source: image.yaml, owner: slurm } }`,
      'files: /etc/x: the image has no user slurm',
    ],
    ['a module', `${FROM}steps: [{ modules: [aa] }]`, 'aa is in no modules directory'],
    [
      'a module that another one requires',
      `${FROM}steps: [{ modules: [c] }]`,
      'lmod, required by c (modules/c/module.yaml:1:12), is in no modules directory',
    ],
    [
      'its base',
      'from: { image: nowhere }',
      'images/bad/image.yaml: there is neither a recipe images/nowhere/image.yaml nor an imported image nowhere',
    ],
  ])('that names %s that is not there is refused', async (_, text, message) => {
    await lab.recipe('bad', `${text}\n`)
    const ran = await lab.fails('bad')
    expect(ran.status).toBe(1)
    expect(errorOf(ran).startsWith(message)).toBe(true)
    expect(hintOf(ran)).not.toBe('')
  })

  it('that is built on itself, over another, is refused with the whole circle', async () => {
    await lab.recipe('loop-a', 'from: { image: loop-b }\n')
    await lab.recipe('loop-b', 'from: { image: loop-a }\n')
    const ran = await lab.fails('loop-a')
    expect(errorOf(ran)).toBe('images are built on each other in a circle: loop-a → loop-b → loop-a')
    expect(hintOf(ran)).toBe('let one of them start from something else')
    for (const name of ['loop-a', 'loop-b']) await rm(lab.path('site/images', name), { recursive: true })
  })

  it('whose modules require each other is refused with the line of each arrow', async () => {
    await lab.recipe('bad', `${FROM}steps: [{ modules: [a] }]\n`)
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toBe('a → b → a')
    expect(ran.stderr).toContain('modules/a/module.yaml:1:12: a requires b\n')
    expect(ran.stderr).toContain('modules/b/module.yaml:2:12: b requires a\n')
    expect(hintOf(ran)).toBe('take one of the requires away')
    const plan = await lab.muster(['module', 'plan', 'b'])
    expect(plan).toMatchObject({ status: 1, stdout: '' })
    expect(errorOf(plan)).toBe('b → a → b')
  })

  it('that is not there is refused, and nothing is made for its name', async () => {
    const ran = await lab.fails('god')
    expect(errorOf(ran)).toBe('there is no recipe god — did you mean good?')
    expect(await readdir(lab.path('data/images/logs'))).not.toContain('god')
    expect((await lab.muster(['image', 'log', 'god'])).status).toBe(1)
  })

  it('whose name leads elsewhere is refused, and nothing is made there', async () => {
    const ran = await lab.fails('../../../canary/evil')
    expect(errorOf(ran)).toBe('there is no recipe ../../../canary/evil')
  })
})

describe('a template that cannot be rendered', () => {
  it('is an error that names it', async () => {
    await lab.recipe('bad', `${FROM}files: { /etc/x: x.j2 }\n`, { 'x.j2': 'one\n{{ vars.nope }}\n' })
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toMatch(/^(images\/)?bad\/x\.j2: /)
    expect(ran.stderr).toMatch(/undefined|not defined/)
  })
})

const fromDnf = (url: string, packages: string): string =>
  `from: { dnf: 9 }\nrepositories: { tiny: { url: "${url}", trusted: true } }\npackages: [${packages}]\n`

describe('packages', () => {
  it('that are not there are named, with what was perhaps meant', async () => {
    await lab.recipe('bad', fromDnf(`file://${lab.path('rpms')}`, 'tiny-shel, slurm'))
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toBe(
      'tiny-shel is in none of the repositories — did you mean tiny-shell?; slurm is in none of the repositories',
    )
    expect(hintOf(ran)).toBe('is it spelt right, and in the repositories of the recipe?')
    expect(await readdir(lab.path('site/images/bad'))).not.toContain('lock.json')
  })

  it('that exclude each other are named', async () => {
    await lab.recipe('bad', fromDnf(`file://${lab.path('rpms')}`, 'tiny-shell, one, two'))
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toBe('the packages cannot be installed together')
    expect(ran.stderr).toMatch(/one.*conflicts with two/)
  })

  it.each([
    ['a port where nobody listens', 'http://127.0.0.1:1/x', /127\.0\.0\.1:1|tiny/],
    ['a directory that is not there', 'file:///nonexistent', /nonexistent|tiny/],
  ])('from %s are an error that says so', async (_, url, said) => {
    await lab.recipe('bad', fromDnf(url, 'tiny-shell'))
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toBe('bad: a package repository cannot be read')
    expect(ran.stderr).toMatch(said)
    expect(hintOf(ran)).toBe('check the address and the network, or name another mirror')
  })

  it('of Debian from a mirror that does not answer are an error that names it', async () => {
    await lab.recipe('bad', 'from: { debian: { suite: bookworm, mirrors: ["http://127.0.0.1:1/"] } }\n')
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toBe('bad: a package repository cannot be read')
    expect(ran.stderr).toContain('http://127.0.0.1:1/dists/bookworm/InRelease')
    expect(await readdir(lab.path('site/images/bad'))).not.toContain('lock.json')
  })
})

describe('a step that fails', () => {
  const look = { status: 1, command: ': ls /nowhere', said: 'ls: /nowhere: No such file or directory\n' }

  it.each([
    { step: 'run: "true; ls /nowhere; echo not reached"', title: 'bad: run true; ls /nowhere; echo not rea…', ...look },
    { step: 'name: look, run: ls /nowhere', title: 'bad: look', ...look },
    { step: 'script: script', title: 'bad: script script', ...look },
    { step: 'modules: [failing]', title: 'bad: module failing', ...look },
    {
      step: 'run: echo $NOPE',
      title: 'bad: run echo $NOPE',
      status: 2,
      command: '',
      said: 'NOPE: parameter not set\n',
    },
  ])('$step: is an error with the command, the end of its output and the log', async ({ step, title, ...found }) => {
    const { status, command, said } = found
    await lab.recipe('bad', `${FROM}steps: [{ ${step} }]\n`, { script: 'echo begins\nls /nowhere\n' })
    const ran = await lab.fails('bad')
    expect(ran.status).toBe(1)
    expect(errorOf(ran)).toBe(`${title} failed with exit status ${status}${command}`)
    expect(ran.stderr).toContain(said)
    expect(hintOf(ran)).toBe('the whole log: muster image log bad; look around in the root with --shell-on-failure')
    const { stdout } = await lab.muster(['image', 'log', 'bad'])
    expect(stdout).toMatch(/=== bad: .*: failed after /)
    expect(stdout).not.toContain('\nnot reached')
  })

  it('after pages of output still says which command it was', async () => {
    await lab.recipe('bad', `${FROM}steps: [{ script: script }]\n`, {
      script: 'talk() { awk \'BEGIN { for (i = 0; i < 2000; i++) print "line", i; exit 4 }\'; }\ntrue\ntalk\n',
    })
    expect(errorOf(await lab.fails('bad'))).toMatch(/^bad: script script failed with exit status 4: (talk|awk)/)
  })

  it('in a playbook is an error that names the task', async () => {
    const play = '- hosts: all\n  gather_facts: false\n  tasks: [{ name: look, raw: ls /nowhere }]\n'
    await lab.recipe('bad', `${FROM}steps: [{ ansible: play/site.yaml }]\n`, { 'play/site.yaml': play })
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toBe('bad: ansible site.yaml failed with exit status 2')
    expect(ran.stderr).toContain('TASK [look]')
    expect(ran.stderr).toContain('/nowhere: No such file or directory')
  })

  it('does not keep those before it from being kept', async () => {
    await lab.recipe('bad', `${FROM}steps: [{ run: "true" }, { run: "false" }]\n`)
    await lab.fails('bad')
    const ran = await lab.fails('bad')
    expect(ran.stderr).toMatch(/^ {2}run true +cached$/m)
    expect(ran.stderr).toMatch(/^ {2}run false +failed after /m)
  })
})

describe('a base of the site’s own', () => {
  it.each([
    ['chatty', 'bases/chatty pin printed something that is not JSON'],
    ['broken', 'bad: from broken failed with exit status 3'],
    ['evil', 'bad: from evil failed with exit status 2'],
  ])('%s: what it does wrong is told, and goes nowhere', async (kind, message) => {
    await lab.recipe('bad', `from: { ${kind}: {} }\n`)
    expect(errorOf(await lab.fails('bad'))).toBe(message)
  })
})

describe('what leads out of the folder of the recipe', () => {
  it.each([
    ['files', `${FROM}files: { /etc/x: out }\n`, 'files: out leads out of the folder of the recipe'],
    ['steps', `${FROM}steps: [{ script: out }]\n`, 'steps: out leads out of the folder of the recipe'],
  ])('is refused in %s', async (_, text, message) => {
    await lab.recipe('bad', text)
    await symlink(`${canary}/secret`, lab.path('site/images/bad/out'))
    expect(errorOf(await lab.fails('bad'))).toBe(message)
  })
})

describe('links in a root', () => {
  afterEach(async () => {
    names = await state()
  })

  it('that a recipe places itself are not followed to this machine', async () => {
    await lab.recipe('links', `${FROM}files: { /opt: tree, /opt/out/secret: text }\n`, { text: 'evil\n' })
    await mkdir(lab.path('site/images/links/tree'))
    await symlink(canary, lab.path('site/images/links/tree/out'))
    expect((await lab.muster(['image', 'build', 'links'])).status).toBeLessThan(2)
  })

  it('that lead out are not followed to this machine', async () => {
    await tinyRoot(lab.path('linked'))
    await rm(lab.path('linked/home'), { recursive: true })
    await symlink(canary, lab.path('linked/home'))
    await symlink(`${canary}/resolv.conf`, lab.path('linked/etc/resolv.conf'))
    const recipe =
      'from: { directory: ../../../linked }\noutputs: [squashfs]\n' +
      'steps: [{ run: "true", network: true }, { run: "rm -rf /home/*" }]\nprune: ["/home/*"]\n'
    await lab.recipe('linked-file', `${recipe}files: { /home/secret: text }\n`, { text: 'evil\n' })
    // It may be refused: an image keeps nothing in /tmp, and the canary may lie there.
    expect((await lab.muster(['image', 'build', 'linked-file'])).status).toBeLessThan(2)
    await lab.recipe('linked', recipe)
    expect((await lab.list(await lab.build('linked')))['/home']).toBe(`lrwxrwxrwx 0/0 -> ${canary}`)
  })

  it('that a step puts where its network settings were are not followed to this machine', async () => {
    await tinyRoot(lab.path('stub'))
    await symlink('/stub/resolv.conf', lab.path('stub/etc/resolv.conf'))
    await lab.recipe(
      'stub',
      'from: { directory: ../../../stub }\noutputs: [squashfs]\n' +
        `steps: [{ run: "mv /stub /moved; ln -s ${canary} /stub", network: true }]\n`,
    )
    expect((await lab.muster(['image', 'build', 'stub'])).status).toBeLessThan(2)
  })
})

describe('a name that is not UTF-8', () => {
  it('is an error that says where it is', async () => {
    await mkdir(lab.path('odd'))
    await exec('sh', ['-c', 'cd "$1"; touch "$(printf "na\\377me")"', 'sh', lab.path('odd')])
    await lab.recipe('bad', 'from: { directory: ../../../odd }\n')
    const ran = await lab.fails('bad')
    expect(errorOf(ran)).toMatch(/na.*me: the name is not UTF-8$/)
    expect(hintOf(ran)).toBe('rename or remove it in a step')
  })
})

describe('a data directory that cannot be used', () => {
  it('is an error that says so', async () => {
    await writeFile(lab.path('file'), '')
    await chmod(lab.path('file'), 0o600)
    const ran = await lab.elsewhere('file').fails('good')
    expect(errorOf(ran)).toBe(`the data directory ${lab.path('file')} cannot be used`)
    expect(hintOf(ran)).toBe('run it as root, or name another with --data DIR')
  })
})
