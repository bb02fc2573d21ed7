import type { TestPlace } from './subject.ts'

export const PLACES = ['root', 'container', 'vm'] as const satisfies readonly TestPlace[]

/**
 * What may stand in a file of tests: goss' resources with their attributes, as its manual has them for v0.4.
 * Attributes are in the order in which they are checked; the first decides whether there is anything else to check.
 */
export const CHECK_KINDS = [
  'addr',
  'command',
  'dns',
  'file',
  'group',
  'http',
  'interface',
  'kernel-param',
  'matching',
  'mount',
  'package',
  'port',
  'process',
  'service',
  'user',
] as const
export type CheckKind = (typeof CHECK_KINDS)[number]

/** value: a matcher; output: patterns or a matcher; the others are settings, which tell how to look. */
export type AttributeType = 'value' | 'output' | 'text' | 'texts' | 'flag' | 'milliseconds' | 'any'

export interface KindSyntax {
  /** The setting that says what is looked at, where it is not the name of the check. */
  readonly target?: string
  /** What that must look like, and what is said where it does not. */
  readonly form?: readonly [RegExp, string]
  readonly required: readonly string[]
  /** Attributes of a system that runs; in a plain tree they would tell of the machine that tests, or of nothing. */
  readonly booted?: readonly string[]
  /** Found to be false, it leaves nothing of the others to be looked at. */
  readonly first?: string
  readonly attributes: Readonly<Record<string, AttributeType>>
}

/** Known to every resource. */
export const COMMON: Readonly<Record<string, AttributeType>> = { title: 'text', meta: 'any', skip: 'flag' }

export const KINDS: Readonly<Record<CheckKind, KindSyntax>> = {
  addr: {
    target: 'address',
    form: [/^(tcp|udp)[46]?:\/\/(\[[0-9a-f:.]+\]|[^\s/:]+):\d{1,5}$/i, 'is not an address such as tcp://10.0.0.1:22'],
    required: ['reachable'],
    booted: ['reachable'],
    attributes: { reachable: 'value', address: 'text', timeout: 'milliseconds', 'local-address': 'text' },
  },
  command: {
    target: 'exec',
    required: ['exit-status'],
    attributes: {
      'exit-status': 'value',
      stdout: 'output',
      stderr: 'output',
      exec: 'text',
      timeout: 'milliseconds',
    },
  },
  dns: {
    target: 'resolve',
    required: ['resolvable'],
    first: 'resolvable',
    attributes: { resolvable: 'value', addrs: 'value', resolve: 'text', server: 'text', timeout: 'milliseconds' },
  },
  file: {
    target: 'path',
    form: [/^\//, 'is not an absolute path'],
    required: ['exists'],
    first: 'exists',
    attributes: {
      exists: 'value',
      filetype: 'value',
      mode: 'value',
      owner: 'value',
      uid: 'value',
      group: 'value',
      gid: 'value',
      size: 'value',
      'linked-to': 'value',
      contents: 'output',
      // As it was called before v0.4.
      contains: 'output',
      md5: 'value',
      sha256: 'value',
      sha512: 'value',
      path: 'text',
    },
  },
  group: {
    target: 'groupname',
    required: ['exists'],
    first: 'exists',
    attributes: { exists: 'value', gid: 'value', groupname: 'text' },
  },
  http: {
    target: 'url',
    form: [/^https?:\/\/\S+$/, 'is not an address such as http://localhost/'],
    required: ['status'],
    attributes: {
      status: 'value',
      headers: 'output',
      body: 'output',
      url: 'text',
      method: 'text',
      'allow-insecure': 'flag',
      'no-follow-redirects': 'flag',
      timeout: 'milliseconds',
      'request-headers': 'texts',
      'request-body': 'text',
      username: 'text',
      password: 'text',
      'ca-file': 'text',
      'cert-file': 'text',
      'key-file': 'text',
      proxy: 'text',
    },
  },
  interface: {
    target: 'name',
    form: [/^[^\s/]{1,15}$/, 'is not the name of an interface'],
    required: ['exists'],
    first: 'exists',
    booted: ['exists'],
    attributes: { exists: 'value', addrs: 'value', mtu: 'value', name: 'text' },
  },
  'kernel-param': {
    target: 'name',
    form: [/^[\w-]+([./][\w@:-]+)+$/, 'is not a parameter such as kernel.ostype'],
    required: ['value'],
    booted: ['value'],
    attributes: { value: 'value', name: 'text' },
  },
  matching: { required: ['content', 'matches'], attributes: { matches: 'value', content: 'any', 'as-reader': 'flag' } },
  mount: {
    target: 'mountpoint',
    form: [/^\//, 'is not an absolute path'],
    required: ['exists'],
    first: 'exists',
    booted: ['exists'],
    attributes: {
      exists: 'value',
      opts: 'value',
      'vfs-opts': 'value',
      source: 'value',
      filesystem: 'value',
      usage: 'value',
      mountpoint: 'text',
      timeout: 'milliseconds',
    },
  },
  package: {
    target: 'name',
    form: [/^[^\s-]\S*$/, 'is not the name of a package'],
    required: ['installed'],
    first: 'installed',
    attributes: { installed: 'value', versions: 'value', name: 'text' },
  },
  port: {
    target: 'port',
    form: [/^((tcp|udp)6?:)?\d{1,5}$/, 'is not a port such as tcp:22, tcp6:22, udp:53 or udp6:53'],
    required: ['listening'],
    first: 'listening',
    booted: ['listening'],
    attributes: { listening: 'value', ip: 'value', port: 'text' },
  },
  process: {
    target: 'comm',
    required: ['running'],
    booted: ['running'],
    attributes: { running: 'value', comm: 'text' },
  },
  service: {
    target: 'name',
    form: [/^[^\s-]\S*$/, 'is not the name of a service'],
    required: [],
    booted: ['running'],
    attributes: { enabled: 'value', running: 'value', runlevels: 'value', name: 'text' },
  },
  user: {
    target: 'username',
    required: ['exists'],
    first: 'exists',
    attributes: {
      exists: 'value',
      uid: 'value',
      gid: 'value',
      groups: 'value',
      home: 'value',
      shell: 'value',
      username: 'text',
    },
  },
}
