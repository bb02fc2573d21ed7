import { readFile, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { Bench, SHELLS } from './testing.ts'

const CA = 'a'.repeat(64)
const ENROL = 'https://10.77.0.1:7181'

describe.concurrent.each(SHELLS)('files of a node, by %s', shell => {
  /** What is wrong; nothing where it goes on. */
  const get = async (plan: string, authority?: string): Promise<string> => {
    await using bench = await Bench.create(shell)
    if (authority !== undefined) await writeFile(`${bench.dir}/ca`, `${authority}\n`)
    const { status } = await bench.run('lib plan files', `forget_plan\n${plan}\nget_files`, {
      AUTHORITY: `${bench.dir}/ca`,
    })
    return status === 0 ? '' : (await readFile(`${bench.dir}/work/problem`, 'utf8')).trim()
  }

  test('are not asked for where no server gives any', async () => {
    expect(await get('')).toBe('')
  })

  test('are done without where the image has no agent', async () => {
    expect(await get(`plan_enrol=${ENROL} plan_ca=${CA}`)).toBe('')
    expect(await get(`plan_enrol=${ENROL} plan_ca=${CA}`, CA)).toBe('')
  })

  test('come from no server of another authority than the initramfs was built for', async () => {
    const other = 'b'.repeat(64)
    expect(await get(`plan_enrol=${ENROL} plan_ca=${other}`, CA)).toBe(
      `the boot server names another certificate of the site than this image: ${other} instead of ${CA}; look at: muster ca show, and trust.ca in site.yaml`,
    )
  })
})
