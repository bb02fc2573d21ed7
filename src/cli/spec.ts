import type { CommandSpec, OptionSpec } from './define.ts'
import { boot, discover, swap, timeline } from './spec-boot.ts'
import { ci, image, key, module } from './spec-images.ts'
import { lab } from './spec-lab.ts'
import { ca, revoke } from './spec-trust.ts'

/** Every command of `muster`: from this table come the parser, --help, completion, the man page and the reference. */
export const globalOptions: readonly OptionSpec[] = [
  {
    flags: '-o, --output <format>',
    about: 'how to print results',
    choices: ['table', 'json', 'yaml'],
    default: 'table',
  },
  { flags: '--json', about: 'the same as -o json' },
  { flags: '--server <address>', about: 'URL or unix socket of the server (MUSTER_SERVER)' },
  {
    flags: '--site <dir>',
    about: 'directory of the site (MUSTER_SITE; else the one you are in)',
    completes: 'directories',
  },
  { flags: '--debug', about: 'show where an error came from' },
]

const yes: OptionSpec = { flags: '-y, --yes', about: 'do not ask' }
const message: OptionSpec = { flags: '-m, --message <text>', about: 'commit message' }
const applyAfter: OptionSpec = { flags: '--apply', about: 'apply the site afterwards' }
const keyFile: OptionSpec = {
  flags: '--key <file>',
  about: 'age key to open secrets with (MUSTER_AGE_KEY_FILE)',
  completes: 'files',
}
const exclude: OptionSpec = { flags: '-x, --exclude <nodes>', about: 'leave these out' }
const separator: OptionSpec = { flags: '-s, --separator <text>', about: 'what stands between names', default: ' ' }
const sets = {
  name: '[nodes...]',
  about: 'node sets; read from standard input when there are none, or for -',
  completes: 'nodes',
} as const
const settings = { name: '[settings...]', about: 'path=value, path+=item to append, path= to take it out' } as const
const oneNode = { name: '<node>', about: 'name of a node', completes: 'nodes' } as const
const nodeSet = { name: '<nodes>', about: 'node set', completes: 'nodes' } as const
const groupName = { name: '<group>', about: 'name of a group', completes: 'groups' } as const

const WHERE_EDITED =
  'In the site of the server; with --site (or MUSTER_SITE) in that directory instead, without a server.'

const site: CommandSpec = {
  name: 'site',
  about: 'The site: plain YAML in git that says what the cluster is',
  commands: [
    {
      name: 'init',
      about: 'Begin a new site in a directory: a few files to start from, committed',
      args: [{ name: '<dir>', about: 'directory to make', completes: 'directories' }],
      options: [{ flags: '--name <name>', about: 'name of the site; that of the directory unless given' }],
      examples: ['muster site init mysite'],
      action: async () => (await import('./commands/site-files.ts')).init,
    },
    {
      name: 'check',
      about: 'Check a site; every mistake with file, line and column',
      details:
        'Looks at every file of the site, and at the tests of its images. Silent and exit status 0 when all is well; exit status 1 otherwise. ' +
        'Needs no server.',
      args: [{ name: '[dir]', about: 'directory of the site', completes: 'directories' }],
      options: [keyFile],
      examples: [
        'muster site check',
        'muster site check examples/site',
        "muster site check -o json | jq '.problems[].file'",
      ],
      action: async () => (await import('./commands/site-files.ts')).check,
    },
    {
      name: 'show',
      about: 'Show all that a node gets, as the files say now',
      details: 'Needs no server.',
      args: [oneNode],
      examples: ['muster site show n001', 'muster site show n001 -o json'],
      action: async () => (await import('./commands/site-files.ts')).show,
    },
    {
      name: 'diff',
      about: 'Show what applying the site would change, for which nodes',
      options: [
        { flags: '--against <commit>', about: 'compare the files with a commit instead; needs no server' },
        { flags: '--exit-code', about: 'exit status 1 when there is a difference' },
      ],
      examples: ['muster site diff', 'muster site diff --against HEAD~1'],
      action: async () => (await import('./commands/site-server.ts')).diff,
    },
    {
      name: 'apply',
      about: 'Make the site the desired state of the cluster, all or nothing',
      details: 'Shows the difference first and asks. No node is rebooted by this.',
      options: [yes, { flags: '--allow-dirty', about: 'take changes that are not committed, too' }],
      examples: ['muster site apply', 'muster site apply --yes'],
      action: async () => (await import('./commands/site-server.ts')).apply,
    },
    {
      name: 'log',
      about: 'List what was applied when and by whom, newest first',
      options: [{ flags: '-n, --limit <count>', about: 'how many', default: '20' }],
      examples: ['muster site log', 'muster site log -n 3 -o json'],
      action: async () => (await import('./commands/site-server.ts')).log,
    },
    {
      name: 'revert',
      about: 'Go back to an earlier generation: a new commit with the old files, applied',
      args: [{ name: '[generation]', about: 'number from `muster site log`; the one before unless given' }],
      options: [yes],
      examples: ['muster site revert', 'muster site revert 12 --yes'],
      action: async () => (await import('./commands/site-server.ts')).revert,
    },
    {
      name: 'schema',
      about: 'Print the JSON Schema of a kind of file, or write all of them for editors',
      args: [
        { name: '[kind]', about: 'which file', choices: ['site', 'cluster', 'group', 'nodes', 'image', 'module'] },
      ],
      options: [{ flags: '--write <dir>', about: 'write all of them into this directory', completes: 'directories' }],
      examples: ['muster site schema nodes', 'muster site schema --write .schema'],
      action: async () => (await import('./commands/site-files.ts')).schema,
    },
  ],
}

const nodeset: CommandSpec = {
  name: 'nodeset',
  about: 'Node sets: fold, expand, count, compare (ClusterShell and Slurm notation)',
  details:
    'n[001-128]  n[1-9/2]  r[1-4]n[01-32]  a,b  a!b  a&b  a^b  @group  @all  n0*\nGroups come from the site you are in. Needs no server.',
  commands: [
    {
      name: 'fold',
      about: 'Write names as one node set',
      args: [sets],
      options: [exclude],
      examples: [
        'muster nodeset fold n001 n002 n003',
        'squeue -h -o %N | muster nodeset fold',
        "muster nodeset fold '@compute!@gpu'",
      ],
      action: async () => (await import('./commands/nodeset.ts')).foldSets,
    },
    {
      name: 'expand',
      about: 'Write out every name',
      args: [sets],
      options: [exclude, separator],
      examples: ["muster nodeset expand 'n[001-003]'", "muster nodeset expand -s '\\n' @rack1"],
      action: async () => (await import('./commands/nodeset.ts')).expandSets,
    },
    {
      name: 'count',
      about: 'Count the nodes',
      args: [sets],
      options: [exclude],
      examples: ['muster nodeset count @all'],
      action: async () => (await import('./commands/nodeset.ts')).countSets,
    },
    {
      name: 'diff',
      about: 'Compare two node sets',
      details: 'Exit status 1 when they differ.',
      args: [
        { ...nodeSet, name: '<a>', about: 'one set' },
        { ...nodeSet, name: '<b>', about: 'the other' },
      ],
      examples: ["muster nodeset diff 'n[1-10]' 'n[5-12]'"],
      action: async () => (await import('./commands/nodeset.ts')).diffSets,
    },
  ],
}

const node: CommandSpec = {
  name: 'node',
  about: 'Nodes: list them, look at one, edit them in the site',
  commands: [
    {
      name: 'ls',
      about: 'List nodes, alike ones folded into one line',
      args: [{ ...nodeSet, name: '[nodes]' }],
      options: [{ flags: '-l, --long', about: 'one line per node' }],
      examples: [
        'muster node ls',
        'muster node ls @compute',
        "muster node ls 'n[001-016]' -l",
        'muster node ls -o json',
      ],
      action: async () => (await import('./commands/node.ts')).ls,
    },
    {
      name: 'show',
      about: 'Show one node: what it should be and what it is',
      args: [oneNode],
      examples: ['muster node show n001'],
      action: async () => (await import('./commands/node.ts')).show,
    },
    timeline,
    swap,
    revoke,
    {
      name: 'add',
      about: 'Add nodes to the site and commit',
      details: WHERE_EDITED,
      args: [nodeSet, settings],
      options: [
        { flags: '--cluster <name>', about: 'cluster to put them into, where there are several' },
        { flags: '--file <path>', about: 'nodes.yaml or nodes/NAME.yaml' },
        message,
        applyAfter,
      ],
      examples: [
        "muster node add 'n[129-132]' 'groups=[compute]' --cluster prod",
        'muster node add spare1 interfaces.prov.mac=52:54:00:12:34:56',
      ],
      action: async () => (await import('./commands/edit.ts')).nodeAdd,
    },
    {
      name: 'set',
      about: 'Set values of nodes in the site and commit',
      details: WHERE_EDITED,
      args: [nodeSet, settings],
      options: [message, applyAfter],
      examples: [
        'muster node set n001 boot.image=compute@dev',
        "muster node set 'n[001-016]' boot.args+=numa=off",
        'muster node set n001 boot.image=',
      ],
      action: async () => (await import('./commands/edit.ts')).nodeSet,
    },
    {
      name: 'rm',
      about: 'Remove nodes from the site and commit',
      details: WHERE_EDITED,
      args: [nodeSet],
      options: [yes, message, applyAfter],
      examples: ['muster node rm n128 --yes'],
      action: async () => (await import('./commands/edit.ts')).nodeRm,
    },
  ],
}

const group: CommandSpec = {
  name: 'group',
  about: 'Groups: list them, look at one, edit them in the site',
  commands: [
    {
      name: 'ls',
      about: 'List groups and their nodes, as applied',
      examples: ['muster group ls', 'muster group ls -o json'],
      action: async () => (await import('./commands/group.ts')).ls,
    },
    {
      name: 'show',
      about: 'Show the nodes of a group, as applied',
      args: [groupName],
      examples: ['muster group show compute'],
      action: async () => (await import('./commands/group.ts')).show,
    },
    {
      name: 'add',
      about: 'Add a group to the site and commit',
      details: WHERE_EDITED,
      args: [{ name: '<group>', about: 'name of the new group' }, settings],
      options: [message, applyAfter],
      examples: ["muster group add bigmem 'groups=[compute]' vars.memory=2048"],
      action: async () => (await import('./commands/edit.ts')).groupAdd,
    },
    {
      name: 'set',
      about: 'Set values of a group in the site and commit',
      details: WHERE_EDITED,
      args: [groupName, settings],
      options: [message, applyAfter],
      examples: ['muster group set compute boot.image=compute@stable'],
      action: async () => (await import('./commands/edit.ts')).groupSet,
    },
    {
      name: 'rm',
      about: 'Remove a group that no node uses from the site and commit',
      details: WHERE_EDITED,
      args: [groupName],
      options: [yes, message, applyAfter],
      examples: ['muster group rm bigmem --yes'],
      action: async () => (await import('./commands/edit.ts')).groupRm,
    },
  ],
}

const secret: CommandSpec = {
  name: 'secret',
  about: 'Secrets: values encrypted with age in the site',
  details: 'Work on a checkout of the site; nothing leaves it in clear.',
  commands: [
    {
      name: 'keygen',
      about: 'Make a key, and name it as a recipient in site.yaml',
      options: [{ flags: '--key <file>', about: 'file to write the key to, outside the site', completes: 'files' }],
      examples: ['muster secret keygen --key /etc/muster/age.key'],
      action: async () => (await import('./commands/secret.ts')).keygen,
    },
    {
      name: 'set',
      about: 'Encrypt a value and put it into a file of the site',
      details:
        'The value is read from standard input or asked for; never given as an argument, where others could see it.',
      args: [
        { name: '<file>', about: 'site.yaml, groups/NAME.yaml, nodes.yaml …', completes: 'files' },
        { name: '<path>', about: 'defaults.vars.munge_key, bmc.password, n001.bmc.password …' },
      ],
      options: [message],
      examples: [
        'muster secret set groups/compute.yaml bmc.password',
        'muster secret set site.yaml defaults.vars.munge_key < munge.key',
      ],
      action: async () => (await import('./commands/secret.ts')).set,
    },
    {
      name: 'edit',
      about: 'Change a secret in your editor',
      args: [
        { name: '<file>', about: 'file of the site', completes: 'files' },
        { name: '<path>', about: 'path of the secret' },
      ],
      options: [keyFile, message],
      examples: ['muster secret edit site.yaml defaults.vars.motd_token'],
      stopsItself: true,
      action: async () => (await import('./commands/secret.ts')).edit,
    },
    {
      name: 'ls',
      about: 'List where the secrets are, never what they are',
      examples: ['muster secret ls'],
      action: async () => (await import('./commands/secret.ts')).ls,
    },
    {
      name: 'rotate',
      about: 'Encrypt every secret anew for the recipients of site.yaml',
      details:
        'After adding or removing a recipient. Needs a key that opens the secrets as they are. Somebody who had a removed key may still know the old values: change those as well.',
      options: [keyFile, message],
      examples: ['muster secret rotate --key /etc/muster/age.key'],
      action: async () => (await import('./commands/secret.ts')).rotate,
    },
  ],
}

const token: CommandSpec = {
  name: 'token',
  about: 'Tokens: access to the API for people and programs',
  commands: [
    {
      name: 'create',
      about: 'Make a token; it is shown once',
      args: [{ name: '<name>', about: 'who or what it is for' }],
      options: [
        {
          flags: '--role <role>',
          about: 'what it may do',
          choices: ['viewer', 'operator', 'admin'],
          default: 'viewer',
        },
        { flags: '--expires <duration>', about: 'how long it is valid, such as 12h or 90d', default: '90d' },
      ],
      examples: ['muster token create grafana --role viewer --expires 365d'],
      action: async () => (await import('./commands/token.ts')).create,
    },
    {
      name: 'ls',
      about: 'List tokens',
      examples: ['muster token ls'],
      action: async () => (await import('./commands/token.ts')).ls,
    },
    {
      name: 'revoke',
      about: 'End a token at once',
      args: [{ name: '<id>', about: 'id from `muster token ls`' }],
      examples: ['muster token revoke 1f2e3d4c5b6a'],
      action: async () => (await import('./commands/token.ts')).revoke,
    },
  ],
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'serve',
    about: 'Run the server',
    options: [
      { flags: '--data <dir>', about: 'directory of its state', default: '/var/lib/muster', completes: 'directories' },
      {
        flags: '--role <role>',
        about: 'what it does: control (site, state, API), boot (what nodes need), or all of it',
        choices: ['all', 'control', 'boot'],
        default: 'all',
      },
      {
        flags: '--listen <address>',
        about: 'address and port of the API; fd:3 for a socket it inherits',
        default: '127.0.0.1:7171',
      },
      {
        flags: '--boot-listen <address>',
        about: 'answer nodes here only (by TLS on the port behind it), and give out no addresses',
      },
      { flags: '--control <url>', about: 'for the role boot: where the control role is (its token in MUSTER_TOKEN)' },
      {
        flags: '--own-dnsmasq',
        about: 'dnsmasq runs as a unit of its own (muster-dnsmasq.service): write its files only',
      },
      { flags: '--socket <path>', about: 'unix socket for root; DATA/muster.sock unless given' },
      keyFile,
      { flags: '--tls-cert <file>', about: 'certificate (PEM); needed beyond loopback', completes: 'files' },
      { flags: '--tls-key <file>', about: 'key of the certificate (PEM)', completes: 'files' },
      {
        flags: '--log-level <level>',
        about: 'how much to log',
        choices: ['error', 'warn', 'info', 'debug'],
        default: 'info',
      },
    ],
    examples: [
      'muster serve --role boot --control https://head:7171',
      'muster serve --site /srv/site',
      'muster serve --site . --data ./data --listen 127.0.0.1:7171',
    ],
    stopsItself: true,
    action: async () => (await import('../serve.ts')).serve,
  },
  site,
  {
    name: 'explain',
    about: 'Explain where the values of a node come from, and what they override',
    details: 'From the site you are in, or else from what the server has applied.',
    args: [oneNode, { name: '[path]', about: 'only this value and those below it' }],
    examples: ['muster explain n001', 'muster explain n001 boot.image', 'muster explain gpu03 boot.args -o json'],
    action: async () => (await import('./commands/explain.ts')).explain,
  },
  {
    name: 'files',
    about: 'Look at the files that the site has for a node',
    commands: [
      {
        name: 'show',
        about: 'Show what a node gets of `files`, rendered; with a path, what is in that file',
        details:
          'From the site you are in, or else what the server has for it. Where a secret would stand it says (secret): that is ' +
          'opened for the node alone.',
        args: [oneNode, { name: '[path]', about: 'only this file, such as /etc/motd' }],
        examples: ['muster files show n001', 'muster files show n001 /etc/slurm/slurm.conf'],
        action: async () => (await import('./commands/files.ts')).show,
      },
      {
        name: 'diff',
        about: 'Compare the files that a node has with those it is to have, as applied',
        details:
          '+ is missing on the node, - is not wanted any more, ~ is another. Nodes say every ten seconds what they have.',
        args: [oneNode],
        options: [{ flags: '--exit-code', about: 'exit status 1 when there is a difference' }],
        examples: ['muster files diff n001', 'muster files diff n001 --exit-code'],
        action: async () => (await import('./commands/files.ts')).diff,
      },
    ],
  },
  nodeset,
  node,
  boot,
  discover,
  group,
  image,
  ci,
  key,
  module,
  secret,
  token,
  ca,
  lab,
  {
    name: 'status',
    about: 'Show the server: version, generation in force, counts',
    examples: ['muster status'],
    action: async () => (await import('./commands/server.ts')).status,
  },
  {
    name: 'events',
    about: 'Show what happened',
    options: [
      { flags: '-f, --follow', about: 'go on showing what happens' },
      { flags: '--after <revision>', about: 'begin after this revision' },
      { flags: '--kind <kind>', about: 'only these, such as site.applied or site.*' },
      { flags: '-n, --limit <count>', about: 'how many', default: '50' },
    ],
    examples: ['muster events', "muster events --follow --kind 'site.*'", 'muster events --after 1200 -o json'],
    action: async () => (await import('./commands/server.ts')).events,
  },
  {
    name: 'audit',
    about: 'Show who changed what, when and from where, newest first',
    options: [{ flags: '-n, --limit <count>', about: 'how many', default: '50' }],
    examples: ['muster audit', 'muster audit -n 500 -o json'],
    action: async () => (await import('./commands/server.ts')).audit,
  },
  {
    name: 'backup',
    about: 'Save the state of a running server into a file',
    details: 'Desired and observed state, events, tokens (hashed). The site itself is in git: push it somewhere.',
    args: [{ name: '<file>', about: 'file to write', completes: 'files' }],
    examples: ['muster backup muster-2026-11-15.db'],
    action: async () => (await import('./commands/server.ts')).backup,
  },
  {
    name: 'restore',
    about: 'Put a backup back in place, while the server is stopped',
    args: [{ name: '<file>', about: 'file made by `muster backup`', completes: 'files' }],
    options: [
      { flags: '--data <dir>', about: 'directory of the state', default: '/var/lib/muster', completes: 'directories' },
      yes,
    ],
    examples: ['muster restore muster-2026-11-15.db --yes'],
    action: async () => (await import('../restore.ts')).restore,
  },
  {
    name: 'completion',
    about: 'Print the completion script for a shell',
    args: [{ name: '<shell>', about: 'which shell', choices: ['bash', 'zsh', 'fish'] }],
    examples: [
      'source <(muster completion bash)',
      'muster completion zsh > ~/.zfunc/_muster',
      'muster completion fish > ~/.config/fish/completions/muster.fish',
    ],
    action: async () => (await import('./commands/completion.ts')).completion,
  },
  {
    name: 'man',
    about: 'Print the manual page',
    examples: ['muster man | man -l -'],
    action: async () => (await import('./commands/man.ts')).man,
  },
  {
    name: 'complete',
    about: 'Candidates for the word being typed; called by the completion scripts',
    args: [{ name: '[words...]', about: 'the command line so far' }],
    hidden: true,
    action: async () => (await import('./commands/completion.ts')).complete,
  },
]
