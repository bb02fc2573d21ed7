import { z } from 'zod'
import { EnvName, Name, PackageName } from './values.ts'

const PackageNames = z.array(PackageName)

// A NUL would end the value in the middle.
const EnvValue = z.string().refine(value => !value.includes('\0'), 'must not hold a NUL byte')

/** modules/NAME/module.yaml: what a module needs before its install.sh is run in the root of an image. */
export const ModuleFile = z.strictObject({
  about: z.string().nullish().describe('What it is for, for people.'),
  requires: z.array(Name).nullish().describe('Modules that must be installed before this one.'),
  packages: z
    .strictObject({
      debian: PackageNames.nullish().describe('For Debian, Ubuntu and their kin.'),
      redhat: PackageNames.nullish().describe('For Red Hat, Rocky, Alma, Fedora and their kin.'),
      suse: PackageNames.nullish().describe('For SUSE and openSUSE.'),
      alpine: PackageNames.nullish().describe('For Alpine.'),
      all: PackageNames.nullish().describe('For all of them, where the name is the same.'),
    })
    .nullish()
    .describe('Packages it needs, by family of distributions.'),
  network: z.boolean().nullish().describe('Whether install.sh may use the network; it may not unless said.'),
  env: z.record(EnvName, EnvValue).nullish().describe('Environment variables for install.sh.'),
})
export type ModuleFile = z.infer<typeof ModuleFile>
