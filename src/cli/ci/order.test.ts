import { expect, test } from 'vitest'
import { siteOf } from '../../site/testing.ts'
import { buildOrder } from './order.ts'

const FROM: Readonly<Record<string, string>> = {
  base: '{ debian: bookworm }',
  compute: '{ image: base }',
  gpu: '{ image: compute }',
  login: '{ image: base }',
  rescue: '{ debian: bookworm }',
  imported: '{ image: vendor }',
  'own-a': '{ nix: { x: 1 } }',
  'own-b': '{ nix: { x: 2 } }',
}

async function waits(...names: readonly string[]): Promise<Record<string, readonly string[]>> {
  const files = Object.entries(FROM).map(([name, from]) => [`images/${name}/image.yaml`, `from: ${from}\n`])
  return Object.fromEntries(buildOrder(await siteOf(Object.fromEntries(files) as Record<string, string>), names))
}

test('independent images wait for nobody', async () => {
  expect(await waits('base', 'rescue', 'imported')).toEqual({ base: [], rescue: [], imported: [] })
})

test('an image waits for those it starts from, however far below', async () => {
  expect(await waits('gpu', 'login', 'compute', 'base')).toEqual({
    base: [],
    compute: ['base'],
    login: ['base'],
    gpu: ['compute', 'base'],
  })
})

test('of several that share one nobody asked for, the first makes it', async () => {
  expect(await waits('login', 'compute')).toEqual({ login: [], compute: ['login'] })
  expect(await waits('gpu', 'login')).toEqual({ login: [], gpu: ['login'] })
  expect(await waits('gpu', 'base')).toEqual({ base: [], gpu: ['base'] })
})

test("those from one of the site's own bases go one by one", async () => {
  expect(await waits('own-a', 'own-b')).toEqual({ 'own-a': [], 'own-b': ['own-a'] })
})
