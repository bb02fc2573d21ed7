/**
 * Every error a user can meet is declared here once: its code, the HTTP status it becomes, and the next step to take.
 * Throw `new MusterError('NODE_UNKNOWN', 'no node is named n999')`; the catalogue adds the rest.
 */
export const catalogue = {
  USAGE: [400, 'see --help'],
  NODESET_INVALID: [400, 'node sets look like n[001-128], n[1-9/2], @compute, n[1-10]!n5'],
  NODE_UNKNOWN: [404, 'list the nodes with: muster node ls'],
  NODE_EXISTS: [409, 'change it with: muster node set'],
  GROUP_UNKNOWN: [404, 'list the groups with: muster group ls'],
  GROUP_EXISTS: [409, 'change it with: muster group set'],
  GROUP_IN_USE: [409, 'take it out of the groups of those nodes first'],
  PATH_UNKNOWN: [404, 'leave the path out to see every value'],
  SITE_NOT_FOUND: [404, 'give the directory with --site, or make one with: muster site init DIR'],
  SITE_EXISTS: [409, 'choose an empty directory'],
  SITE_INVALID: [422, 'correct the lines named above; what runs now is unchanged'],
  SITE_NOT_GIT: [409, 'make it a git repository: git init && git add . && git commit -m "first"'],
  SITE_DIRTY: [409, 'commit the changes, or say --allow-dirty'],
  SITE_BUSY: [409, 'try again in a moment'],
  SITE_MOVED: [409, 'look at the new difference with: muster site diff'],
  EDIT_INVALID: [400, 'nothing was changed'],
  GENERATION_UNKNOWN: [404, 'list them with: muster site log'],
  SECRET_KEY_MISSING: [400, 'make a key with: muster secret keygen --key FILE'],
  SECRET_UNDECRYPTABLE: [422, 'is this the right key? give it with --key FILE'],
  TEMPLATE_INVALID: [422, 'templates are Jinja: {{ index }}, {{ name }}, {{ vars.x }}'],
  IMAGE_UNKNOWN: [404, 'list the images with: muster image ls'],
  IMAGE_AMBIGUOUS: [409, 'write more of the digest'],
  IMAGE_IN_USE: [409, 'let what uses it use another image first'],
  IMAGE_INCOMPLETE: [409, 'send the missing artefacts first'],
  IMAGE_DAMAGED: [500, 'build or pull it again; muster image verify says what is wrong'],
  IMAGE_TOO_LARGE: [422, 'take something out: prune, fewer packages; or raise limits.size in the recipe'],
  TESTS_MISSING: [409, 'tests are files of images/NAME/tests in the site'],
  TESTS_FAILED: [422, 'see what was expected and what was found above'],
  IMAGE_UNTRUSTED: [409, 'sign it with a key the site trusts: muster image sign'],
  CHANNEL_UNKNOWN: [404, 'list the channels with: muster image channels'],
  CHANNEL_REFUSED: [409, 'see what it lacks above; what the channel points to is unchanged'],
  KEY_INVALID: [400, 'make a key with: muster key new NAME'],
  RECIPE_INVALID: [422, 'correct the lines named above'],
  RECIPE_UNKNOWN: [404, 'a recipe is a file images/NAME/image.yaml in the site'],
  RECIPE_CYCLE: [422, 'let one of them start from something else'],
  BUILD_FAILED: [500, 'the whole log: muster image log; look around in the root with --shell-on-failure'],
  BUILD_NEEDS: [500, 'install what is missing'],
  PACKAGE_UNKNOWN: [422, 'is it spelt right, and in the repositories of the recipe?'],
  PACKAGE_GONE: [502, 'take the versions of today with --update, or name a mirror that keeps old ones'],
  MIRROR_UNREACHABLE: [502, 'check the address and the network, or name another mirror'],
  LOCK_STALE: [409, 'build once without --locked, and commit the lock'],
  ARCHIVE_INVALID: [422, 'nothing was unpacked; make the archive anew'],
  MODULE_UNKNOWN: [404, 'modules are folders of modules/ or of a source named in site.yaml'],
  MODULE_CYCLE: [422, 'take one of the requires away'],
  MODULE_INVALID: [422, 'correct the lines named above'],
  MODULE_SOURCE: [502, 'check the address of the repository and that the commit is in it'],
  BLOB_UNKNOWN: [404, 'send it first'],
  DIGEST_MISMATCH: [400, 'what arrived is not what was named; send it again'],
  DISK_FULL: [507, 'make room: muster image gc'],
  BOOT_NOT_READY: [409, 'it asks again by itself; apply a site with: muster site apply'],
  MACHINE_UNKNOWN: [404, 'list them with: muster discover ls'],
  SWAP_REFUSED: [409, 'see who has whose machine with: muster node show'],
  MACHINE_KNOWN: [409, 'see who it is with: muster discover ls --all'],
  LAB_NEEDS: [500, 'install what is missing, or try simulated nodes: muster lab up --simulated 100'],
  LAB_RUNNING: [409, 'end it first: muster lab down'],
  LAB_NOT_RUNNING: [409, 'start it with: muster lab up'],
  LAB_BUSY: [409, 'wait until it is done, or stop it'],
  LAB_FAILED: [500, 'look at muster lab status; muster lab down clears everything away'],
  EXEC_FAILED: [500, 'run the command by hand to see more'],
  ENROL_REFUSED: [403, 'boot it anew; see how nodes are let in: docs/how-to/trust-nodes.md'],
  ENROL_EARLY: [503, 'ask again in a few seconds'],
  CREDENTIAL_INVALID: [401, 'boot it anew: a node gets its credential while it boots'],
  CA_FAILED: [500, 'install what is missing: apt-get install openssl'],
  CA_MISSING: [409, 'it is made by a server that boots nodes: muster serve --role all'],
  REVISION_AHEAD: [410, 'the state was restored from a backup: read everything anew and follow from there'],
  STATE_CONFLICT: [409, 'somebody changed it meanwhile; read it again and retry'],
  STATE_DAMAGED: [500, 'restore a backup with: muster restore FILE'],
  STATE_NEWER: [500, 'this data was written by a newer muster; use that version'],
  STATE_LOCKED: [409, 'another muster uses this data directory; stop it first'],
  BACKUP_INVALID: [400, 'choose a file made by: muster backup'],
  FILE_UNWRITABLE: [400, 'name a file in a directory you may write to'],
  SERVER_UNREACHABLE: [503, 'is it running? start it with: muster serve'],
  ADDRESS_UNUSABLE: [500, 'choose another address or port with --listen'],
  TOKEN_MISSING: [401, 'give a token with MUSTER_TOKEN, or use the unix socket as root'],
  TOKEN_INVALID: [401, 'make a new one with: muster token create'],
  TOKEN_EXPIRED: [401, 'make a new one with: muster token create'],
  TOKEN_UNKNOWN: [404, 'list them with: muster token ls'],
  FORBIDDEN: [403, 'ask an administrator for a token with that role'],
  RATE_LIMITED: [429, 'wait a moment, then go on more slowly'],
  BODY_TOO_LARGE: [413, 'send less at once'],
  REQUEST_INVALID: [400, 'see the API document at /api/v1/openapi.json'],
  ROUTE_UNKNOWN: [404, 'see the API document at /api/v1/openapi.json'],
  CONFIRMATION_NEEDED: [400, 'not a terminal: say --yes to go on'],
  ABORTED: [499, 'nothing was changed'],
  INTERNAL: [500, 'look at the log of muster serve'],
} as const satisfies Record<string, readonly [status: number, hint: string]>

export type ErrorCode = keyof typeof catalogue

export class MusterError extends Error {
  override readonly name = 'MusterError'
  readonly code: ErrorCode
  readonly hint: string
  /** Lines that belong to the error, each a finding of its own (file:line:column: what). */
  readonly details: readonly string[]

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint?: string; details?: readonly string[]; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint ?? catalogue[code][1]
    this.details = options.details ?? []
  }

  get status(): number {
    return catalogue[this.code][0]
  }
}

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(catalogue, code)

/** What any thrown value says, for places that only need words. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
