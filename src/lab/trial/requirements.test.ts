import { describe, expect, test } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { directoryOf } from '../../site/testing.ts'
import { requireTrial } from './requirements.ts'

const IMAGE = { name: 'compute', arch: 'amd64' } as const
const AGENT = { 'usr/lib/muster/muster-agent': '#!/bin/sh\n' }
const SYSTEMD = { 'lib/systemd/system-generators/systemd-debug-generator': '' }
const all = { has: () => Promise.resolve(true) }

async function problem(...args: Parameters<typeof requireTrial>): Promise<readonly string[]> {
  try {
    await requireTrial(...args)
  } catch (error) {
    if (error instanceof MusterError) return [error.code, error.message, error.hint]
    throw error
  }
  return []
}

describe('before a machine is started', () => {
  test('nothing is wrong with an image that has agent and systemd', async () => {
    expect(await problem(IMAGE, await directoryOf({ ...AGENT, ...SYSTEMD }), all)).toEqual([])
  })

  test('the tools are there', async () => {
    const none = { has: () => Promise.resolve(false) }
    expect(await problem(IMAGE, '/', none)).toEqual([
      'BUILD_NEEDS',
      'testing an image in a virtual machine needs what is not there',
      'on Debian: apt-get install qemu-system-x86 busybox-static util-linux',
    ])
    const noQemu = { has: (what: string) => Promise.resolve(what !== 'qemu-system-x86_64') }
    expect((await problem(IMAGE, '/', noQemu))[2]).toBe('on Debian: apt-get install qemu-system-x86')
  })

  test('the image is for such a machine', async () => {
    const [code, message] = await problem({ name: 'arm', arch: 'arm64' }, '/', all)
    expect(code).toBe('BUILD_NEEDS')
    expect(message).toBe('the image arm is for arm64; virtual machines here are x86-64')
  })

  test('somebody in it says when it is ready', async () => {
    expect(await problem(IMAGE, await directoryOf(SYSTEMD), all)).toEqual([
      'IMAGE_INCOMPLETE',
      'the image compute has no agent that could say when it is ready',
      'add it to the recipe: steps: [{ modules: [muster-agent] }]; or let these tests run in a container: where: container',
    ])
  })

  test('systemd starts it', async () => {
    const [code, message] = await problem(IMAGE, await directoryOf(AGENT), all)
    expect(code).toBe('IMAGE_INCOMPLETE')
    expect(message).toBe('the image compute is not started by systemd, which lets tests in')
  })
})
