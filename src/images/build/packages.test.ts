import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Mutex } from '../../lib/mutex.ts'
import { directoryOf, temporaryDir } from '../../site/testing.ts'
import { PackageCache } from './fetch.ts'
import { type PackageTools, type Packaging, resolvePackages } from './packages.ts'

const NAMES = ['ant', 'bee', 'cat', 'dog']
const PACKAGES = NAMES.map(
  (name, at) =>
    `Package: ${name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nFilename: ./${name}.deb\nSize: 1\nSHA256: ${String(at).repeat(64)}\nDescription: small\n`,
).join('\n')

test('builds that run at once each get the packages they asked for', async () => {
  const url = `file://${await directoryOf({ Packages: PACKAGES })}`
  const source = { name: 'tiny', urls: [url], suite: './', components: [], trusted: true }
  const packaging: Packaging = { kind: 'apt', family: 'debian', sources: [source] }
  const dir = await temporaryDir()
  const tools: PackageTools = {
    cache: new PackageCache(join(dir, 'packages')),
    state: join(dir, 'state'),
    scratch: temporaryDir,
    sandbox: {},
    note: () => {},
    turns: new Mutex(),
  }
  const resolved = await Promise.all(
    NAMES.map(name => resolvePackages(packaging, 'amd64', [name], [], [], { ...tools })),
  )
  expect(resolved.map(({ packages }) => packages.map(({ name }) => name))).toEqual(NAMES.map(name => [name]))
})
