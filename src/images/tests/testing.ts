/** Subjects for tests: a tree of files with this machine's programs in it, or this machine itself. Real commands. */
import { chmod, copyFile, mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { type Files, directoryOf, temporaryDir } from '../../site/testing.ts'
import { inRoot } from '../build/sandbox.ts'
import type { Check } from './check.ts'
import { readTests } from './definitions.ts'
import { runChecks } from './run.ts'
import type { Subject, SubjectResult } from './subject.ts'

const ANY = Array.from({ length: 256 }, (_, code) => code)

/** What happens to standard error: into a file, and then the command takes the shell's place. */
const APART = 'exec 2>"$1"; shift; exec "$@"'

/** A root of these files, with what this machine has in /usr, or with these programs of busybox alone. */
export async function treeSubject(
  files: Files,
  change?: (dir: string) => Promise<void>,
  programs?: readonly string[],
): Promise<Subject> {
  const dir = await directoryOf(files)
  await chmod(dir, 0o755)
  if (programs === undefined) {
    await mkdir(join(dir, 'usr'))
    for (const name of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`usr/${name}`, join(dir, name))
  } else {
    await mkdir(join(dir, 'bin'))
    await copyFile('/usr/bin/busybox', join(dir, 'bin/busybox'))
    for (const name of programs) await symlink('busybox', join(dir, 'bin', name))
  }
  await change?.(dir)
  const errors = await temporaryDir()
  return {
    place: 'root',
    run: (argv, { input, timeout = 10_000, env, cwd } = {}) =>
      resultOf(join(errors, 'stderr'), () =>
        inRoot(dir, ['sh', '-c', APART, 'sh', '/run/errors/stderr', ...argv], {
          readable: programs === undefined ? { '/usr': '/usr' } : {},
          writable: { '/run/errors': errors },
          signal: AbortSignal.timeout(timeout),
          allow: ANY,
          ...(input !== undefined && { input: input.toString('utf8') }),
          ...(env !== undefined && { env }),
          ...(cwd !== undefined && { cwd }),
        }),
      ),
  }
}

/** This machine, which runs. */
export async function hostSubject(): Promise<Subject> {
  const file = join(await temporaryDir(), 'stderr')
  return {
    place: 'container',
    run: (argv, { input, timeout = 10_000, env, cwd } = {}) =>
      resultOf(file, () =>
        exec('sh', ['-c', APART, 'sh', file, ...argv], {
          timeout,
          group: true,
          allow: ANY,
          ...(input !== undefined && { input }),
          ...(env !== undefined && { env }),
          ...(cwd !== undefined && { cwd }),
        }),
      ),
  }
}

async function resultOf(
  stderr: string,
  run: () => Promise<{ readonly exitCode: number; readonly stdout: Buffer }>,
): Promise<SubjectResult> {
  try {
    const { exitCode, stdout } = await run()
    return { exitCode, stdout: stdout.subarray(0, 2 ** 20), stderr: await readFile(stderr) }
  } catch (error) {
    if (!(error instanceof MusterError)) throw error
    return { exitCode: 124, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
  }
}

export const checksOf = async (yaml: string): Promise<readonly Check[]> =>
  (await readTests(await directoryOf({ 'a.yaml': yaml }), 'tests')).checks

/** What becomes of the checks of a file: `NAME ATTRIBUTE: passed`, with what was found where it was not. */
export async function outcomesOf(subject: Subject, yaml: string): Promise<string[]> {
  const checks = (await checksOf(`where: container\n${yaml}`)).map(check => ({ ...check, place: subject.place }))
  const results = await runChecks(checks, subject, { signal: new AbortController().signal })
  return results.map(({ name, attribute, status, found, message }) => {
    const why = [...(status === 'failed' ? [found] : []), message].filter(text => text !== undefined)
    return `${name} ${attribute}: ${[status, ...why].join(', ')}`
  })
}
