import type { CommandSpec, OptionSpec } from './define.ts'

const dir: OptionSpec = {
  flags: '--dir <dir>',
  about: 'directory of the lab (MUSTER_LAB; else ./lab)',
  completes: 'directories',
}
const oneNode = { name: '<node>', about: 'name of a node', completes: 'nodes' } as const

/** A virtual cluster on this machine. */
export const lab: CommandSpec = {
  name: 'lab',
  about: 'A virtual cluster on this machine: real kernels in QEMU, or simulated nodes by the thousand',
  commands: [
    {
      name: 'up',
      about: 'Build what is missing, start a server and machines with empty disks, and show how they boot',
      details:
        'Machines and server live in network namespaces of their own and go on when the command ends; `muster lab down` ends them. Simulated nodes speak the HTTP of real ones and run nothing: for trying out scale.',
      options: [
        dir,
        { flags: '--nodes <count>', about: 'how many virtual machines', default: '2' },
        { flags: '--simulated <count>', about: 'how many simulated nodes', default: '0' },
        { flags: '--strangers <count>', about: 'how many virtual machines that nobody knows', default: '0' },
        {
          flags: '--firmware <kind>',
          about: 'what the machines start with',
          choices: ['bios', 'uefi'],
          default: 'bios',
        },
        { flags: '--memory <size>', about: 'memory of each machine', default: '1536 MiB' },
        { flags: '--port <port>', about: 'port of the API on 127.0.0.1', default: '7171' },
        { flags: '--no-wait', about: 'do not wait until the nodes are ready' },
      ],
      examples: [
        'muster lab up --site examples/site',
        'muster lab up --nodes 1 --firmware uefi',
        'muster lab up --nodes 0 --simulated 1000',
      ],
      stopsItself: true,
      action: async () => (await import('./commands/lab.ts')).up,
    },
    {
      name: 'down',
      about: 'End machines and server, and leave nothing behind but images and site',
      options: [dir],
      examples: ['muster lab down'],
      action: async () => (await import('./commands/lab.ts')).down,
    },
    {
      name: 'status',
      about: 'Show the machines of the lab and where everything is',
      options: [dir],
      examples: ['muster lab status', 'muster lab status -o json'],
      action: async () => (await import('./commands/lab.ts')).status,
    },
    {
      name: 'console',
      about: 'Take the serial console of a machine; Ctrl-] leaves',
      args: [oneNode],
      options: [dir],
      examples: ['muster lab console n001'],
      stopsItself: true,
      action: async () => (await import('./commands/lab.ts')).console,
    },
    {
      name: 'power',
      about: 'Switch machines on or off',
      args: [
        { name: '<nodes>', about: 'node set', completes: 'nodes' },
        { name: '<action>', about: 'what to do', choices: ['on', 'off', 'cycle'] },
      ],
      options: [dir],
      examples: ['muster lab power n001 cycle', "muster lab power 'n[001-002]' off"],
      action: async () => (await import('./commands/lab.ts')).power,
    },
    {
      name: 'log',
      about: 'Print what a machine said on its console',
      args: [oneNode],
      options: [dir, { flags: '-f, --follow', about: 'go on with what it says' }],
      examples: ['muster lab log n001', 'muster lab log n001 --follow'],
      stopsItself: true,
      action: async () => (await import('./commands/lab.ts')).log,
    },
    {
      name: 'simulate',
      about: 'Boot simulated nodes against a boot server, and keep them alive',
      args: [{ name: '<server>', about: 'http://address:port of the boot server' }],
      options: [
        { flags: '--machines <file>', about: 'JSON list of { name, mac }', completes: 'files' },
        { flags: '--whole', about: 'fetch artefacts whole and check their digests' },
      ],
      examples: ['muster lab simulate http://10.77.0.1:7180 --machines nodes.json'],
      stopsItself: true,
      action: async () => (await import('./commands/lab.ts')).runSimulation,
    },
  ],
}
