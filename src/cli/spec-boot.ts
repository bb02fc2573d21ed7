import type { CommandSpec } from './define.ts'

const oneNode = { name: '<node>', about: 'name of a node', completes: 'nodes' } as const
const machineId = { name: '<id>', about: 'id, MAC or serial number of a machine' } as const

/** What nodes boot and why, and the machines nobody knows. */
export const boot: CommandSpec = {
  name: 'boot',
  about: 'What nodes boot, and why',
  commands: [
    {
      name: 'script',
      about: 'Print the script the loader of a node would get now',
      args: [oneNode],
      examples: ['muster boot script n001'],
      action: async () => (await import('./commands/boot.ts')).script,
    },
    {
      name: 'explain',
      about: 'Say what a node would boot now, why, from which server, and how its last boot went',
      args: [oneNode],
      examples: ['muster boot explain n001', 'muster boot explain n001 --json'],
      action: async () => (await import('./commands/boot.ts')).explain,
    },
  ],
}

export const timeline: CommandSpec = {
  name: 'timeline',
  about: 'Show the last boots of a node: every phase with the time it took',
  args: [oneNode],
  options: [{ flags: '--boots <count>', about: 'how many boots', default: '1' }],
  examples: ['muster node timeline n001', 'muster node timeline n001 --boots 3'],
  action: async () => (await import('./commands/boot.ts')).timeline,
}

export const swap: CommandSpec = {
  name: 'swap',
  about: 'Let two nodes change machines: the identity of a node moves to a spare with its next boot',
  details:
    'Kept by the server, not in the site. A machine that is up stays what it is until it boots; nothing is restarted.',
  args: [oneNode, { name: '[other]', about: 'node whose machine it gets', completes: 'nodes' }],
  options: [
    { flags: '--why <text>', about: 'reason, shown by node show and boot explain' },
    { flags: '--undo', about: 'each gets its own machine back, with its next boot' },
  ],
  examples: ["muster node swap n012 spare3 --why 'memory errors'", 'muster node swap n012 --undo'],
  action: async () => (await import('./commands/node.ts')).swap,
}

export const discover: CommandSpec = {
  name: 'discover',
  about: 'Machines that nobody knows: what they are, where they are plugged in, and which node they become',
  commands: [
    {
      name: 'ls',
      about:
        'List machines that are no nodes, and those with something unusual about them: moved, or waiting for a place',
      options: [{ flags: '-a, --all', about: 'those that have become nodes, too' }],
      examples: ['muster discover ls', 'muster discover ls --all -o json'],
      action: async () => (await import('./commands/discover.ts')).ls,
    },
    {
      name: 'adopt',
      about: 'Make a machine a node: its MAC goes into the site, and it goes on booting',
      details: 'Commits to the site of the server and applies it.',
      args: [machineId, { name: '[words...]', about: 'as NODE' }],
      options: [{ flags: '-m, --message <text>', about: 'commit message' }],
      examples: ['muster discover adopt 525400770001 as n017'],
      action: async () => (await import('./commands/discover.ts')).adopt,
    },
    {
      name: 'forget',
      about: 'Forget a machine',
      args: [machineId],
      examples: ['muster discover forget 525400770001'],
      action: async () => (await import('./commands/discover.ts')).forget,
    },
  ],
}
