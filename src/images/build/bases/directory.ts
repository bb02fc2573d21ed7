import { exec } from '../../../lib/exec.ts'
import { digestOf } from '../inputs.ts'
import { withTool } from '../sandbox.ts'
import { type BaseFacts, type PinnedBase, existing } from './base.ts'

/** A directory that holds a root: known by names, owners, sizes and times. */
export async function directoryBase(facts: BaseFacts, path: string): Promise<PinnedBase> {
  const dir = await existing(facts, path, 'directory')
  // The size and time of a directory say how it was filled, not what is in it.
  const common = String.raw`%P\0%y\0%m\0%U\0%G\0`
  const argv = [
    dir,
    '-xdev',
    '-type',
    'd',
    '-printf',
    `${common}\\n`,
    '-o',
    '-printf',
    String.raw`${common}%s\0%T@\0%l\0\n`,
  ]
  const { stdout } = await exec('find', argv, { timeout: 0 })
  const lines = stdout.toString('latin1').split('\n')
  const pin = digestOf(lines.sort())
  return {
    request: { directory: pin },
    pin: () => Promise.resolve(pin),
    stage: () => ({
      title: 'from directory',
      inputs: { directory: pin },
      async make({ upper, sandbox }) {
        await withTool(
          upper,
          ['cp', '--archive', '--reflink=auto', '--one-file-system', '--no-target-directory', '/run/source', '/target'],
          {
            ...sandbox,
            readable: { '/run/source': dir },
          },
        )
      },
    }),
  }
}
