import { chmod, copyFile, mkdir, readFile, readdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { VERSION } from '../../src/version.ts'
import { MUSTER, ROOT, makeSite, muster, run, serve, temporaryDirectory } from './testing.ts'

let dir: string
beforeAll(async () => {
  dir = await temporaryDirectory()
})
afterAll(() => rm(dir, { recursive: true }))

describe('bin/muster', () => {
  const folded = { status: 0, stdout: 'a[1-2]\n', stderr: '' }

  it('runs from anywhere', async () => {
    for (const cwd of ['/', dir, join(ROOT, 'src')]) expect(await muster('nodeset fold a1 a2', { cwd })).toEqual(folded)
    expect(await run('bin/muster', ['nodeset', 'fold', 'a1', 'a2'], { cwd: ROOT })).toEqual(folded)
    expect(await run('./muster', ['nodeset', 'fold', 'a1', 'a2'], { cwd: join(ROOT, 'bin') })).toEqual(folded)
  })

  it('runs through links, one and two', async () => {
    await mkdir(join(dir, 'links'))
    await symlink(MUSTER, join(dir, 'links/muster'))
    await symlink('muster', join(dir, 'links/m'))
    const env = { PATH: `${join(dir, 'links')}:/usr/bin:/bin` }
    for (const name of ['muster', 'm'])
      expect(await run('sh', ['-c', `${name} nodeset fold a1 a2`], { cwd: dir, env })).toEqual(folded)
    expect(await run('links/m', ['nodeset', 'fold', 'a1', 'a2'], { cwd: dir })).toEqual(folded)
  })

  it('runs where there is no home and nothing but a PATH', async () => {
    expect(await run('env', ['-i', 'PATH=/usr/bin:/bin', MUSTER, 'nodeset', 'fold', 'a1', 'a2'])).toEqual(folded)
  })

  it('passes words on as they are', async () => {
    expect(await muster(['nodeset', 'expand', '-s', ' * ', 'a[1-2]'])).toMatchObject({ stdout: 'a1 * a2\n' })
  })

  it('knows its version', async () => {
    expect(await muster('--version')).toEqual({ status: 0, stdout: `${VERSION}\n`, stderr: '' })
  })

  it('talks to the server of npm start when no other is named', async () => {
    const checkout = join(dir, 'checkout')
    await mkdir(join(checkout, 'bin'), { recursive: true })
    await copyFile(MUSTER, join(checkout, 'bin/muster'))
    await chmod(join(checkout, 'bin/muster'), 0o755)
    for (const name of ['src', 'node_modules', 'package.json', 'scripts'])
      await symlink(join(ROOT, name), join(checkout, name))
    await using server = await serve(await makeSite(join(dir, 'site')), join(checkout, 'var/demo/data'))
    const status = (env: Record<string, string>): Promise<{ stdout: string; stderr: string }> =>
      run(join(checkout, 'bin/muster'), ['status'], { env })
    expect((await status({ MUSTER_SERVER: '' })).stdout).toContain(`site ${server.site}: `)
    expect((await status({})).stderr).toContain('cannot reach the server at /nonexistent')
  })
})

const shell = (script: string): ReturnType<typeof run> =>
  run('bash', ['-c', `set -o pipefail; ${script}`], { env: { MUSTER_SITE: join(dir, 'site') } })

describe('in a pipe', () => {
  it('does not complain about a reader that has seen enough', async () => {
    expect(await shell("muster nodeset expand -s '\\n' 'n[1-200000]' | head -1")).toEqual({
      status: 0,
      stdout: 'n1\n',
      stderr: '',
    })
    expect(await shell('muster man | head -1')).toMatchObject({ status: 0, stderr: '' })
    expect(await shell('muster nodeset fold n1 | true')).toMatchObject({ status: 0, stderr: '' })
  })

  it('gives all of a long output to a slow reader', async () => {
    const { stdout } = await shell("muster nodeset expand -s '\\n' 'n[1-200000]' | { read -r _; sleep 0.3; wc -l; }")
    expect(stdout.trim()).toBe('199999')
  })

  it('fails when there is no room for what it prints', async () => {
    const { status, stderr } = await shell('muster nodeset fold n1 > /dev/full')
    expect(status).toBe(1)
    expect(stderr).toMatch(/^error: .*\n/)
  })
})

describe('shell scripts', async () => {
  const scripts: string[] = []
  for (const folder of ['bin', 'scripts', '.ci']) {
    for (const name of await readdir(join(ROOT, folder)).catch(() => [])) {
      const file = join(folder, name)
      const text = await readFile(join(ROOT, file), 'utf8').catch(() => '')
      if (text.startsWith('#!/bin/sh\n')) scripts.push(file)
    }
  }

  it('are those we know of', () => {
    expect(scripts).toEqual(expect.arrayContaining(['bin/muster', 'scripts/setup', 'scripts/start']))
  })

  test.each(scripts)('%s is POSIX sh, says shellcheck', async file => {
    expect(await run('shellcheck', ['-s', 'sh', join(ROOT, file)])).toEqual({ status: 0, stdout: '', stderr: '' })
  })
})

describe('a fresh clone', () => {
  // Downloads the packages: what takes long here is the network.
  it('brings what it needs by itself', { timeout: 300_000 }, async () => {
    const clone = join(dir, 'clone')
    await exec('git', ['clone', '--quiet', '--depth=1', `file://${ROOT}`, clone])
    // How this machine gets at packages (a proxy, certificates, a cache) is its own affair.
    const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? '']))
    const first = await run(join(clone, 'bin/muster'), ['nodeset', 'fold', 'a1', 'a2'], { env, timeout: 280_000 })
    expect(first).toMatchObject({ status: 0, stdout: 'a[1-2]\n' })
    expect(first.stderr).toMatch(/^set-up: npm packages\n/)
    const second = await run(join(clone, 'bin/muster'), ['nodeset', 'fold', 'a1', 'a2'], { env })
    expect(second).toEqual({ status: 0, stdout: 'a[1-2]\n', stderr: '' })
  })
})
