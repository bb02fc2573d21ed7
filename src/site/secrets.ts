import { encrypt, decrypt, formProblem } from '../lib/age.ts'
import { MusterError, messageOf } from '../lib/errors.ts'
import type { YamlEdit } from '../lib/yaml/edit.ts'
import type { Tree } from '../lib/yaml/tree.ts'
import type { Problem } from './problems.ts'
import type { Site } from './site.ts'

/** A value encrypted in one of the site's files. */
export interface StoredSecret {
  readonly file: string
  readonly path: readonly string[]
  readonly line: number
  readonly column: number
  readonly armored: string
}

export function storedSecrets(site: Site): StoredSecret[] {
  return site.files.files.flatMap(file => (file.tree === undefined ? [] : [...secretsIn(file.path, file.tree, [])]))
}

function* secretsIn(file: string, tree: Tree, path: readonly string[]): Generator<StoredSecret> {
  if (tree.kind === 'scalar') {
    if (tree.tag !== undefined) yield { file, path, line: tree.line, column: tree.column, armored: String(tree.value) }
  } else if (tree.kind === 'list') {
    for (const [index, item] of tree.items.entries()) yield* secretsIn(file, item, [...path, String(index)])
  } else {
    for (const [key, entry] of tree.entries) yield* secretsIn(file, entry.value, [...path, key])
  }
}

/** Without keys: does each look like a secret at all? With them: can each really be opened? */
export async function checkSecrets(site: Site, identities: readonly string[]): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const { file, path, line, column, armored } of storedSecrets(site)) {
    const message =
      formProblem(armored) ?? (identities.length === 0 ? undefined : await undecryptable(armored, identities))
    if (message !== undefined) problems.push({ file, line, column, path: path.join('.'), message })
  }
  return problems
}

const undecryptable = (armored: string, identities: readonly string[]): Promise<string | undefined> =>
  decrypt(armored, identities).then(() => undefined, messageOf)

export async function encryptFor(site: Site, text: string): Promise<string> {
  if (site.recipients.length === 0) {
    throw new MusterError(
      'SECRET_KEY_MISSING',
      'the site names no recipients for its secrets (site.yaml: secrets.recipients)',
    )
  }
  return encrypt(text, site.recipients)
}

/** The edits, by file, that encrypt every secret anew for the recipients the site names now. */
export async function rotation(site: Site, identities: readonly string[]): Promise<Map<string, YamlEdit[]>> {
  const edits = new Map<string, YamlEdit[]>()
  for (const { file, path, line, armored } of storedSecrets(site)) {
    const text = await decrypt(armored, identities).catch((error: unknown) => {
      throw new MusterError('SECRET_UNDECRYPTABLE', `${file}:${line}: ${path.join('.')}: ${messageOf(error)}`)
    })
    const edit: YamlEdit = { op: 'set', path, value: await encryptFor(site, text), tag: '!age' }
    edits.set(file, [...(edits.get(file) ?? []), edit])
  }
  return edits
}
