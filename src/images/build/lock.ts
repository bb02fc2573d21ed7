import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'

/**
 * images/NAME/lock.json: exactly what was installed, to be committed beside the recipe. A build takes what it says as
 * long as the recipe asks for the same; what the recipe asks for anew is added, what it has stays, `--update` moves all.
 */
const Hex = z.string().regex(/^[0-9a-f]{64}$/)
const FileName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9+._~^%:@-]*$/, 'is not a file name')

const LockedPackage = z.strictObject({
  name: z.string().min(1),
  version: z.string().min(1),
  arch: z.string().min(1),
  sha256: Hex,
  size: z.int().min(0),
  repository: z.string().min(1),
  /** Below the repository's address. */
  path: z.string().min(1),
  file: FileName,
})
export type LockedPackage = z.infer<typeof LockedPackage>

const LockedRepository = z.strictObject({
  urls: z.array(z.string()).min(1),
  suite: z.string().optional(),
  components: z.array(z.string()).optional(),
})

const LockedSet = z.strictObject({
  /** Digest of what was asked for. */
  request: Hex,
  repositories: z.record(z.string(), LockedRepository),
  packages: z.array(LockedPackage),
})
export type LockedSet = z.infer<typeof LockedSet>

export const Lock = z.strictObject({
  schema: z.literal('muster.lock/1'),
  /** The time everything the build writes has. */
  time: z.iso.datetime(),
  /** What the base was: packages of a distribution, or the digest of an archive, a directory, a container image. */
  base: z.union([LockedSet, z.strictObject({ request: Hex, pin: z.json() })]).optional(),
  packages: LockedSet.optional(),
})
export type Lock = z.infer<typeof Lock>

/** One package per line: a change of versions is a readable diff. */
export function lockText(given: Lock): string {
  // Keys in the order of the schema, whoever made it.
  const lock = Lock.parse(given)
  const sections = (['base', 'packages'] as const).flatMap(name => {
    const section = lock[name]
    if (section === undefined) return []
    if (!('packages' in section)) return [`  ${JSON.stringify(name)}: ${JSON.stringify(section)}`]
    const { packages, ...head } = section
    const lines = packages.map(item => `      ${JSON.stringify(item)}`).join(',\n')
    const start = JSON.stringify(head).slice(0, -1)
    return [`  ${JSON.stringify(name)}: ${start},\n    "packages": [\n${lines}\n    ]}`]
  })
  const head = `  "schema": ${JSON.stringify(lock.schema)},\n  "time": ${JSON.stringify(lock.time)}`
  return `{\n${[head, ...sections].join(',\n')}\n}\n`
}

/** Undefined when it is no lock of ours. */
export function parseLock(text: string): Lock | undefined {
  try {
    return Lock.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** The same packages from where they are to be had now. */
export const withAddresses = (
  set: LockedSet,
  sources: readonly { name: string; urls: readonly string[] }[],
): LockedSet => ({
  ...set,
  repositories: Object.fromEntries(
    Object.entries(set.repositories).map(([name, repository]) => {
      const urls = sources.find(source => source.name === name)?.urls ?? repository.urls
      return [name, { ...repository, urls: [...urls] }]
    }),
  ),
})

/** Which packages and bytes exactly a lock names, whatever the mirrors and the time. */
export const lockedIdentity = ({ base, packages }: Lock): unknown => [identityOf(base), identityOf(packages)]

type Section = Lock['base'] | Lock['packages']

const identityOf = (section: Section): unknown =>
  section === undefined || 'pin' in section ? section?.pin : section.packages.map(({ sha256 }) => sha256)

export const isSameLocked = (a: Section, b: Section): boolean => isDeepStrictEqual(identityOf(a), identityOf(b))
