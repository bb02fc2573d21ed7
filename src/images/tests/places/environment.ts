const FIXED = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
  LC_ALL: 'C.UTF-8',
  TERM: 'dumb',
}

/** The beginning of a command that gets nothing of our environment: tokens may be in it. */
export const withEnvironment = (more: Readonly<Record<string, string>> = {}): string[] => [
  'env',
  '-i',
  ...Object.entries({ ...FIXED, ...more }).map(([name, value]) => `${name}=${value}`),
]
