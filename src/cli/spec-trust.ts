import type { CommandSpec } from './define.ts'

/** By what nodes know the server, and the server nodes. */
export const ca: CommandSpec = {
  name: 'ca',
  about: 'The certificate authority by which nodes know the server',
  details: 'Made by the server when it first starts; its keys never leave DATA/ca.',
  commands: [
    {
      name: 'show',
      about: 'Show its certificate and that of the server: fingerprints, dates, addresses',
      examples: ['muster ca show', 'muster ca show --json'],
      action: async () => (await import('./commands/ca.ts')).show,
    },
    {
      name: 'renew',
      about: 'Give the server a new certificate now; it does so by itself in time',
      examples: ['muster ca renew'],
      action: async () => (await import('./commands/ca.ts')).renew,
    },
    {
      name: 'export',
      about: 'Print or write its certificate, never a key',
      args: [{ name: '[file]', about: 'file to write', completes: 'files' }],
      examples: ['muster ca export', 'muster ca export ca.pem'],
      action: async () => (await import('./commands/ca.ts')).exportCertificate,
    },
  ],
}

export const revoke: CommandSpec = {
  name: 'revoke',
  about: 'Take the credentials of nodes away: until their next boot they get no files',
  details: 'What they have they keep: change the secrets that were in their files as well.',
  args: [{ name: '<nodes>', about: 'node set', completes: 'nodes' }],
  examples: ['muster node revoke n012', "muster node revoke 'n[001-016]'"],
  action: async () => (await import('./commands/ca.ts')).revoke,
}
