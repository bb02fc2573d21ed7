import { join } from 'node:path'
import { resolveModules } from '../../images/modules/resolve.ts'
import { siteModules } from '../../images/modules/site.ts'
import type { ModuleSpec } from '../../images/modules/spec.ts'
import { openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import { patiently } from '../ask.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { type DataOption, dataDir } from '../images.ts'
import { table } from '../output.ts'

async function modulesOf({ io, options }: Call<DataOption>): Promise<ReadonlyMap<string, ModuleSpec>> {
  const dir = await siteDir(io, options)
  const site = await openSite(await directorySource(dir))
  return patiently(io, 'reading modules', siteModules(site, dir, join(dataDir(io, options), 'images/state'))())
}

const rowOf = ({ name, origin, requires, about }: ModuleSpec): string[] => [
  name,
  origin,
  requires.map(one => one.name).join(', ') || '-',
  about ?? '',
]

const valueOf = ({ name, origin, requires, about, packages, network, digest }: ModuleSpec) => ({
  name,
  origin,
  requires: requires.map(one => one.name),
  packages,
  network,
  digest,
  ...(about !== undefined && { about }),
})

export async function ls(call: Call<DataOption>): Promise<void> {
  const modules = [...(await modulesOf(call)).values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  await call.out.result(modules.map(valueOf), () =>
    modules.length === 0
      ? ['no modules: a module is a folder modules/NAME with module.yaml and install.sh']
      : table(['MODULE', 'FROM', 'REQUIRES', 'ABOUT'], modules.map(rowOf)),
  )
}

export async function plan(call: Call<DataOption>): Promise<void> {
  const ordered = resolveModules(call.rest, await modulesOf(call))
  await call.out.result(ordered.map(valueOf), () => table(['MODULE', 'FROM', 'REQUIRES', 'ABOUT'], ordered.map(rowOf)))
}
