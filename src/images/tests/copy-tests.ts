import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { listFolder } from './folder.ts'
import { type Subject, TESTS_INSIDE } from './subject.ts'

const FILE = 'mkdir -p "${1%/*}" && cat >"$1" && chmod "$2" "$1"'
const ALL_THERE = 'chmod -R a-w "$1.new" && mv "$1.new" "$1"'

/** Takes care that the tests are to be seen inside: places that cannot show a folder of ours get a copy. */
export async function bringTests(subject: Subject, tests: string): Promise<void> {
  if ((await subject.run(['test', '-d', TESTS_INSIDE])).exitCode === 0) return
  const sh = async (script: string, args: readonly string[], input?: Buffer): Promise<void> => {
    const more = input === undefined ? {} : { input }
    const { exitCode, stderr } = await subject.run(['sh', '-c', script, 'sh', ...args], { timeout: 60_000, ...more })
    if (exitCode === 0) return
    throw new MusterError('EXEC_FAILED', `the tests cannot be copied inside: ${stderr.toString('utf8').trim()}`)
  }
  for (const path of (await listFolder(tests, tests)).files) {
    // Links lead to other files of the folder.
    const [content, { mode }] = await Promise.all([readFile(join(tests, path)), stat(join(tests, path))])
    await sh(FILE, [`${TESTS_INSIDE}.new/${path}`, (mode & 0o100) === 0 ? '644' : '755'], content)
  }
  await sh(ALL_THERE, [TESTS_INSIDE])
}
