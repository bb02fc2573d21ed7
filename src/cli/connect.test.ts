import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findSiteDir, siteDir } from './connect.ts'
import { memoryIo } from './testing.ts'

let dir: string
beforeAll(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'muster-cli-')))
  await mkdir(join(dir, 'site/groups/deep'), { recursive: true })
  await writeFile(join(dir, 'site/site.yaml'), 'site: demo\n')
})
afterAll(() => rm(dir, { recursive: true }))

describe('the site', () => {
  const output = 'table' as const

  it('is the one the current directory is in, however deep', async () => {
    for (const below of ['', 'groups', 'groups/deep'])
      expect(await siteDir(memoryIo({ cwd: join(dir, 'site', below) }), { output })).toBe(join(dir, 'site'))
  })

  it('is what was named: as argument, with --site, in MUSTER_SITE, in this order', async () => {
    const env = { MUSTER_SITE: 'c' }
    const io = memoryIo({ cwd: join(dir, 'site'), env })
    expect(await siteDir(io, { output, site: 'b' }, 'a')).toBe(join(dir, 'site/a'))
    expect(await siteDir(io, { output, site: 'b' })).toBe(join(dir, 'site/b'))
    expect(await siteDir(io, { output })).toBe(join(dir, 'site/c'))
  })

  it('may be elsewhere altogether', async () => {
    expect(await siteDir(memoryIo({ cwd: dir }), { output, site: '/srv/site' })).toBe('/srv/site')
  })

  it('is none where there is none', async () => {
    const io = memoryIo({ cwd: dir })
    expect(await findSiteDir(io, { output })).toBeUndefined()
    await expect(siteDir(io, { output })).rejects.toMatchObject({
      code: 'SITE_NOT_FOUND',
      message: `${dir} is not in a site (no site.yaml here or above)`,
    })
  })
})
