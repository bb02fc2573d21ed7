import { access, constants, lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../../lib/errors.ts'
import type { ExecResult } from '../../../lib/exec.ts'
import { bases } from '../../../site/recipe.ts'
import { digestOfFiles } from '../inputs.ts'
import { type SandboxOptions, withTool } from '../sandbox.ts'
import type { BaseFacts, PinnedBase } from './base.ts'

/**
 * A base of the site's own: the executable bases/KIND. It gets its settings as JSON on standard input and fills
 * $MUSTER_ROOT; docs/how-to/images.md has the contract.
 */
export async function ownBase(
  facts: BaseFacts,
  sitesBases: string,
  kind: string,
  settings: unknown,
  cache: string,
): Promise<PinnedBase> {
  const program = join(sitesBases, kind)
  const info = await lstat(program).catch(() => undefined)
  if (info === undefined) {
    const known = [...Object.keys(bases), ...(await readdir(sitesBases).catch(() => []))]
    throw new MusterError('RECIPE_INVALID', `from: there is no base ${kind}`, {
      hint: `choose from ${known.join(', ')}, or add an executable bases/${kind}`,
    })
  }
  await access(program, constants.X_OK).catch((error: unknown) => {
    throw new MusterError('RECIPE_INVALID', `bases/${kind} is not executable`, {
      cause: error,
      hint: `chmod +x bases/${kind}`,
    })
  })
  const digest = await digestOfFiles(program)
  await mkdir(cache, { recursive: true })
  const run = async (
    act: 'pin' | 'unpack',
    pin: unknown,
    target: string | undefined,
    sandbox: SandboxOptions,
  ): Promise<ExecResult> =>
    withTool(target, ['/run/muster/base', act], {
      ...sandbox,
      network: true,
      cwd: '/run/muster/recipe',
      input: JSON.stringify({ settings, pin, image: facts.image, arch: facts.arch }),
      env: {
        ...sandbox.env,
        MUSTER_ROOT: '/target',
        MUSTER_CACHE: '/cache',
        MUSTER_IMAGE: facts.image,
        MUSTER_ARCH: facts.arch,
      },
      readable: { '/run/muster/base': program, '/run/muster/recipe': facts.recipeDir },
      writable: { '/cache': cache },
    })
  return {
    request: { kind, settings, program: digest },
    async pin() {
      const { onOutput: _, ...quiet } = facts.sandbox
      const text = (await run('pin', null, undefined, quiet)).stdout.toString('utf8').trim()
      return text === '' ? null : parsedPin(kind, text)
    },
    stage: pin => ({
      title: `from ${kind}`,
      inputs: { kind, settings, program: digest, pin, arch: facts.arch },
      make: async ({ upper, sandbox }) => void (await run('unpack', pin, upper, sandbox)),
    }),
  }
}

function parsedPin(kind: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new MusterError('RECIPE_INVALID', `bases/${kind} pin printed something that is not JSON`, {
      cause: error,
      hint: 'it prints what it will use, as JSON, and nothing else, to standard output',
    })
  }
}
