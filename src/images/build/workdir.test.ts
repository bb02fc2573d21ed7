import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { temporaryDir } from '../../site/testing.ts'
import { ownedName } from '../store/owner.ts'
import { openWorkDir } from './workdir.ts'

/** Of a process that is gone by now. */
async function nameOfDead(): Promise<string> {
  const script = 'read -r stat < /proc/$$/stat; set -- ${stat##*)}; echo "$$-${20}"'
  return `${(await exec('sh', ['-c', script])).stdout.toString('utf8').trim()}.aa`
}

test('is empty, nobody else’s business, and gone afterwards', async () => {
  const parent = join(await temporaryDir(), 'a/work')
  let path = ''
  {
    await using work = await openWorkDir(parent)
    path = work.path
    expect(dirname(path)).toBe(parent)
    expect(await readdir(path)).toEqual([])
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    expect((await stat(parent)).mode & 0o777).toBe(0o700)
    await mkdir(join(path, 'root'))
    await writeFile(join(path, 'root/file'), '')
  }
  expect(await readdir(parent)).toEqual([])
})

test('two at once do not meet', async () => {
  const parent = join(await temporaryDir(), 'work')
  await using one = await openWorkDir(parent)
  await writeFile(join(one.path, 'mine'), '')
  await using other = await openWorkDir(parent)
  expect(other.path).not.toBe(one.path)
  expect(await readdir(one.path)).toEqual(['mine'])
  expect((await readdir(parent)).sort()).toEqual([basename(one.path), basename(other.path)].sort())
})

test('what others left behind is taken away, what others are at is not', async () => {
  const parent = await temporaryDir()
  const dead = await nameOfDead()
  const sameNumber = `${process.pid}-1.bb`
  const alive = ownedName()
  for (const name of [dead, sameNumber, alive, 'rubbish']) {
    await mkdir(join(parent, name, 'root'), { recursive: true })
    await writeFile(join(parent, name, 'root/file'), '')
  }
  expect(dead).toMatch(/^\d+-\d+\.aa$/)
  await using work = await openWorkDir(parent)
  expect((await readdir(parent)).sort()).toEqual([alive, basename(work.path)].sort())
  expect(await readdir(join(parent, alive, 'root'))).toEqual(['file'])
})
