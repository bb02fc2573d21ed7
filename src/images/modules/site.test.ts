import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import {
  type Files,
  SMALL,
  directoryOf,
  failureOf,
  git,
  isolateGit,
  repositoryOf,
  temporaryDir,
  writeFiles,
} from '../../site/testing.ts'
import { moduleNames, siteModules } from './site.ts'

beforeAll(isolateGit)

const moduleFiles = (folder: string, about: string): Files => ({
  [`${folder}/module.yaml`]: `about: ${about}\n`,
  [`${folder}/install.sh`]: '#!/bin/sh\n',
})

async function modulesOf(files: Files, cache?: string) {
  const dir = await directoryOf({ ...SMALL, ...files })
  const site = await openSite(await directorySource(dir))
  return { dir, site, modules: siteModules(site, dir, cache ?? (await temporaryDir())) }
}

/** A repository of modules, and the lines of site.yaml that pin it. */
async function shared(name: string, files: Files, path?: string): Promise<string> {
  const dir = await repositoryOf(files)
  const commit = await git(dir, 'rev-parse', 'HEAD')
  return `  ${name}: { git: "file://${dir}", commit: ${commit}${path === undefined ? '' : `, path: ${path}`} }\n`
}

const siteWith = (...sources: string[]): Files => ({
  'site.yaml': `${SMALL['site.yaml']}modules:\n${sources.join('')}`,
})

describe('the modules of a site', () => {
  test('are those that come with Muster, where it has none itself', async () => {
    const { modules } = await modulesOf({})
    const found = await modules()
    expect(found.get('muster-agent')).toMatchObject({ origin: 'muster', file: 'muster:muster-agent/module.yaml' })
    expect([...found.values()].every(({ origin }) => origin === 'muster')).toBe(true)
  })

  test('are its own', async () => {
    const { dir, modules } = await modulesOf(moduleFiles('modules/slurm', 'ours'))
    expect((await modules()).get('slurm')).toMatchObject({
      about: 'ours',
      origin: 'site',
      dir: join(dir, 'modules/slurm'),
      file: 'modules/slurm/module.yaml',
    })
  })

  test('are those of the repositories it pins, at the top or in a folder', async () => {
    const top = await shared('common', moduleFiles('munge', 'top'))
    const folder = await shared('hpc', { ...moduleFiles('modules/lmod', 'folder'), 'README.md': '' }, 'modules')
    const cache = await temporaryDir()
    const { modules } = await modulesOf(siteWith(top, folder), cache)
    const found = await modules()
    expect(found.get('munge')).toMatchObject({ about: 'top', origin: 'common', file: 'common:munge/module.yaml' })
    expect(found.get('lmod')).toMatchObject({ about: 'folder', origin: 'hpc', file: 'hpc:lmod/module.yaml' })
    expect(found.get('lmod')?.dir.startsWith(join(cache, 'modules'))).toBe(true)
  })

  test('are its own where a repository has one of the same name', async () => {
    const common = await shared('common', moduleFiles('slurm', 'theirs'))
    const { modules } = await modulesOf({ ...siteWith(common), ...moduleFiles('modules/slurm', 'ours') })
    expect((await modules()).get('slurm')).toMatchObject({ about: 'ours', origin: 'site' })
  })

  test('its own also comes before one of Muster’s', async () => {
    const { modules } = await modulesOf(moduleFiles('modules/muster-agent', 'ours'))
    expect((await modules()).get('muster-agent')?.about).toBe('ours')
  })

  test('which of two repositories is meant nobody can know', async () => {
    const sources = [await shared('one', moduleFiles('slurm', 'a')), await shared('two', moduleFiles('slurm', 'b'))]
    const { modules } = await modulesOf(siteWith(...sources))
    expect(await failureOf(modules)).toBe(
      'MODULE_INVALID: slurm is in several sources: one:slurm/module.yaml, two:slurm/module.yaml',
    )
  })
})

describe('are read when they are first asked for', () => {
  test('nothing is fetched before', async () => {
    const cache = await temporaryDir()
    const { modules } = await modulesOf(siteWith(await shared('common', moduleFiles('munge', 'x'))), cache)
    expect(await readdir(cache)).toEqual([])
    await modules()
    expect(await readdir(cache)).toEqual(['modules'])
  })

  test('and once', async () => {
    const { dir, modules } = await modulesOf(moduleFiles('modules/slurm', 'first'))
    const [one, other] = await Promise.all([modules(), modules()])
    await writeFiles(dir, moduleFiles('modules/slurm', 'second'))
    expect([one === other, (await modules()).get('slurm')?.about]).toEqual([true, 'first'])
  })
})

test('a repository that cannot be had', async () => {
  const { modules } = await modulesOf(siteWith(`  common: { git: "file:///nowhere.git", commit: ${'0'.repeat(40)} }\n`))
  expect(await failureOf(modules)).toMatch(/^MODULE_SOURCE: /)
})

test('a module of the site that is wrong', async () => {
  const { modules } = await modulesOf({ 'modules/slurm/module.yaml': 'zzz: 1\n', 'modules/slurm/install.sh': '' })
  expect(await failureOf(modules)).toBe('MODULE_INVALID: the modules have 1 error')
})

describe('the names of modules', () => {
  test('are those on this machine: of the site, of Muster, and of what was fetched before', async () => {
    const cache = await temporaryDir()
    const common = await shared('common', { ...moduleFiles('munge', 'top'), 'docs/README.md': '' })
    const { dir, site, modules } = await modulesOf(
      { ...siteWith(common), ...moduleFiles('modules/slurm', 'ours') },
      cache,
    )
    expect(await moduleNames(site, dir, cache)).toEqual(['muster-agent', 'slurm'])
    expect(await readdir(cache)).toEqual([])
    await modules()
    expect(await moduleNames(site, dir, cache)).toEqual(['munge', 'muster-agent', 'slurm'])
  })

  test('are those of Muster where there is no site', async () => {
    expect(await moduleNames(undefined, '/nowhere', '/nowhere')).toEqual(['muster-agent'])
  })
})
