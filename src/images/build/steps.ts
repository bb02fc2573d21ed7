import { lstat, realpath, writeFile } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import type { Step } from '../../site/recipe.ts'
import type { ModuleSpec } from '../modules/spec.ts'
import { digestOfFiles } from './inputs.ts'
import { networkFiles } from './network.ts'
import { type SandboxOptions, inRoot, withTool } from './sandbox.ts'
import type { Stage, StageWork } from './stage.ts'

/** What the steps of a recipe know of the image they work on. */
export interface StepFacts {
  readonly image: string
  readonly arch: string
  readonly recipeDir: string
  /** Groups of the site the recipe names: groups of Ansible's inventory. */
  readonly groups: readonly string[]
  /** The site's folder of shared roles, where there is one. */
  readonly ansibleDir?: string
}

export async function stepStages(step: Step, modules: readonly ModuleSpec[], facts: StepFacts): Promise<Stage[]> {
  if (step.run !== undefined) return [runStage(step, step.run, facts)]
  if (step.script !== undefined) return [await scriptStage(step, step.script, facts)]
  if (step.ansible !== undefined) return [await ansibleStage(step, step.ansible, facts)]
  return modules.map(module => moduleStage(step, module, facts))
}

/** Each command is shown before it is run, so that the log says which one failed. */
const SHELL = ['sh', '-eux'] as const

const environment = (facts: StepFacts): Record<string, string> => ({
  MUSTER_IMAGE: facts.image,
  MUSTER_ARCH: facts.arch,
  DEBIAN_FRONTEND: 'noninteractive',
})

function runStage(step: Step, script: string, facts: StepFacts): Stage {
  return {
    title: step.name ?? `run ${firstWords(script)}`,
    inputs: { image: facts.image, run: script, env: step.env, network: step.network },
    make: work => inside(work, step.network, [...SHELL, '-c', script], { env: { ...environment(facts), ...step.env } }),
  }
}

const firstWords = (script: string): string => {
  const line = script.split('\n').find(text => text.trim() !== '' && !text.trim().startsWith('#')) ?? ''
  return line.trim().length > 32 ? `${line.trim().slice(0, 31)}…` : line.trim()
}

async function scriptStage(step: Step, script: string, facts: StepFacts): Promise<Stage> {
  const file = await insideRecipe(facts.recipeDir, script)
  const isProgram = ((await lstat(file)).mode & 0o100) !== 0
  const target = `/run/muster/${basename(script)}`
  return {
    title: step.name ?? `script ${script}`,
    inputs: { image: facts.image, script: await digestOfFiles(file), env: step.env, network: step.network },
    make: work =>
      inside(work, step.network, isProgram ? [target] : [...SHELL, target], {
        env: { ...environment(facts), ...step.env },
        readable: { [target]: file },
      }),
  }
}

function moduleStage(step: Step, module: ModuleSpec, facts: StepFacts): Stage {
  const network = step.network || module.network
  return {
    title: `module ${module.name}`,
    inputs: { image: facts.image, module: module.name, content: module.digest, env: step.env, network },
    make: work =>
      inside(work, network, [...SHELL, './install.sh'], {
        env: { ...environment(facts), MUSTER_MODULE: module.name, ...module.env, ...step.env },
        readable: { '/run/muster/module': module.dir },
        cwd: '/run/muster/module',
      }),
  }
}

async function inside(
  work: StageWork,
  network: boolean,
  argv: readonly string[],
  options: SandboxOptions,
): Promise<void> {
  const files = network ? await networkFiles(work) : undefined
  try {
    await inRoot(work.overlay, argv, {
      ...work.sandbox,
      ...options,
      network,
      env: { ...work.sandbox.env, ...options.env },
      readable: { ...options.readable, ...files?.readable },
    })
  } finally {
    await files?.tidy()
  }
}

/**
 * Ansible runs outside with the tree as its one host, through the chroot connection: the image needs python3, and neither
 * ssh nor a network.
 */
async function ansibleStage(step: Step, playbook: string, facts: StepFacts): Promise<Stage> {
  const folder = dirname(await insideRecipe(facts.recipeDir, playbook))
  const shared = facts.ansibleDir === undefined ? undefined : await digestOfFiles(facts.ansibleDir)
  return {
    title: step.name ?? `ansible ${basename(playbook)}`,
    inputs: {
      image: facts.image,
      ansible: basename(playbook),
      folder: await digestOfFiles(folder),
      shared,
      vars: step.vars,
      env: step.env,
      network: step.network,
      groups: facts.groups,
    },
    async make(work) {
      const inventory = join(work.scratch, 'inventory.json')
      const host = {
        ansible_host: '/target',
        ansible_connection: 'community.general.chroot',
        ansible_remote_tmp: '/tmp',
      }
      await writeFile(inventory, JSON.stringify({ all: inventoryOf(facts, host) }))
      const vars = join(work.scratch, 'vars.json')
      await writeFile(vars, JSON.stringify(step.vars ?? {}))
      const argv = [
        'ansible-playbook',
        '--inventory',
        '/run/muster/inventory.json',
        '--extra-vars',
        '@/run/muster/vars.json',
        basename(playbook),
      ]
      await withTool(work.overlay, argv, {
        ...work.sandbox,
        live: true,
        network: step.network,
        cwd: '/run/muster/play',
        env: { ...work.sandbox.env, ...environment(facts), ...ANSIBLE, ...step.env },
        readable: {
          '/run/muster/play': folder,
          '/run/muster/inventory.json': inventory,
          '/run/muster/vars.json': vars,
          ...(facts.ansibleDir === undefined ? {} : { '/run/muster/ansible': facts.ansibleDir }),
        },
      })
    },
  }
}

/** Every host is in `all`, and in `ungrouped` when it is in no other group: nothing else can have these names. */
const ITS_OWN = new Set(['all', 'ungrouped'])

function inventoryOf({ image, groups }: StepFacts, host: Readonly<Record<string, string>>): unknown {
  const name = ITS_OWN.has(image) ? `image-${image}` : image
  const named = groups.filter(group => !ITS_OWN.has(group))
  return {
    hosts: { [name]: host },
    children: Object.fromEntries(named.map(group => [group, { hosts: { [name]: null } }])),
  }
}

const ANSIBLE = {
  ANSIBLE_HOME: '/tmp/ansible',
  ANSIBLE_LOCAL_TEMP: '/tmp/ansible/tmp',
  ANSIBLE_ROLES_PATH: '/run/muster/play/roles:/run/muster/ansible/roles',
  ANSIBLE_RETRY_FILES_ENABLED: '0',
  ANSIBLE_NOCOLOR: '1',
  ANSIBLE_NOCOWS: '1',
  ANSIBLE_DEPRECATION_WARNINGS: '0',
}

async function insideRecipe(recipeDir: string, name: string): Promise<string> {
  const real = await realpath(join(recipeDir, name)).catch(() => undefined)
  if (real === undefined) throw new MusterError('RECIPE_INVALID', `steps: there is no ${name} beside the recipe`)
  if (!real.startsWith(`${await realpath(recipeDir)}${sep}`))
    throw new MusterError('RECIPE_INVALID', `steps: ${name} leads out of the folder of the recipe`)
  return real
}
