import { z } from 'zod'

/** Small schemas that the files of a site share. */
export const text = (pattern: RegExp, message: string) => z.string().regex(pattern, message)

/** Of groups, clusters, networks, interfaces, images, modules. */
export const NAME = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/
export const Name = text(NAME, 'is not a name (lower-case letters, digits, - and _)')

// Only as text: 0644 and 0o644 are different numbers to YAML, and one of them would become a wrong mode.
export const FileMode = text(/^[0-7]{3,4}$/, 'is not a file mode such as "0644"').transform(mode =>
  mode.padStart(4, '0'),
)
export const FileTarget = text(/^(?!.*\/\.\.?(\/|$))\/[^\0]*[^/\0]$/s, 'is not an absolute path')
/** Of a file that we write on nodes: they read it in a line of a list, in a shell. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f]/
export const isPlainPath = (path: string): boolean =>
  !path.includes('//') && !CONTROL.test(path) && Buffer.byteLength(path) <= MAX_PATH
const MAX_PATH = 1024
export const NodePath = FileTarget.refine(
  isPlainPath,
  `is no path for a file on nodes: it has // or a control character in it, or is longer than ${MAX_PATH} bytes`,
)
export const LinkTarget = z
  .string()
  .min(1)
  .refine(
    target => !CONTROL.test(target) && Buffer.byteLength(target) <= MAX_PATH,
    `is nothing a link can point to: it has a control character in it, or is longer than ${MAX_PATH} bytes`,
  )
export const Command = z
  .string()
  .min(1)
  .max(1000)
  .refine(command => !CONTROL.test(command), 'is not one line')
/** A user or group of a node: by name, or by number where it has no name. */
export const Owner = z
  .union([z.int().min(0).max(4_294_967_294).transform(String), z.string()])
  .pipe(text(/^([a-z_][a-z0-9_-]{0,31}|\d{1,10})$/, 'is not a user or group: a name, or a number'))
export const UserName = text(/^[a-z_][a-z0-9_-]*\$?$/i, 'is not a user or group name')
export const EnvName = text(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not the name of an environment variable')

/** A first letter that is no dash: what stands in a list of packages must never become an option of apt or dnf. */
export const PackageName = text(
  /^[A-Za-z0-9@][A-Za-z0-9@._+:~^*/-]{0,199}(=[A-Za-z0-9.+~:^-]{1,100})?$/,
  'is not the name of a package, with =VERSION where one is wanted',
)
