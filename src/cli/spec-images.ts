import type { CommandSpec, OptionSpec } from './define.ts'

/** `muster image …` and `muster module …`: they work on a data directory and need no server. */
const data: OptionSpec = {
  flags: '--data <dir>',
  about: 'data directory (MUSTER_DATA; else /var/lib/muster)',
  completes: 'directories',
}
const reference = {
  name: '<image>',
  about: 'NAME for the newest, NAME@sha256:… or the beginning of a digest',
  completes: 'images',
} as const

const message: OptionSpec = { flags: '-m, --message <text>', about: 'commit message' }
const channel = { name: '<channel>', about: 'NAME@CHANNEL, such as compute@stable' } as const
const why: OptionSpec = { flags: '--reason <text>', about: 'why, for the history' }
const signingKey: OptionSpec = {
  flags: '--signing-key <file>',
  about: 'private key to sign with (MUSTER_SIGNING_KEY)',
  completes: 'files',
}
const signingCommand: OptionSpec = {
  flags: '--signing-command <command>',
  about: 'program that signs (MUSTER_SIGNING_COMMAND)',
}
const publicKey: OptionSpec = {
  flags: '--public <key>',
  about: 'public half of what the command signs with (MUSTER_SIGNING_PUBLIC)',
}
const force: OptionSpec = { flags: '--force', about: 'over one that is there' }
const locked: OptionSpec = { flags: '--locked', about: 'fail when the lock does not say everything, as CI should' }

export const image: CommandSpec = {
  name: 'image',
  about: 'Images: built from recipes, kept by digest',
  commands: [
    {
      name: 'build',
      about: 'Build images from their recipes; what has not changed is not done again',
      details:
        'Needs root and no server. Package versions are those of images/NAME/lock.json, which is written when it does not say ' +
        'everything yet: commit it. Runs isolated: no network but where a step asks for it, no files of this machine.',
      args: [{ name: '[names...]', about: 'images of the site; all of them unless given', completes: 'recipes' }],
      options: [
        data,
        { flags: '--update', about: 'take the newest package versions and write the lock anew' },
        locked,
        { flags: '--shell-on-failure', about: 'open a shell in the root when a stage fails' },
      ],
      examples: [
        'muster image build compute',
        'muster image build base compute --update',
        'muster image build --locked -o json',
      ],
      action: async () => (await import('./commands/image-build.ts')).build,
      stopsItself: true,
    },
    {
      name: 'test',
      about: 'Run the tests of an image, and keep their report with it',
      details:
        'Tests are files of images/NAME/tests, in the format of goss; `where:` in a file says where its tests need to run: root (the ' +
        'plain tree), container (booted by systemd-nspawn) or vm. NAME is built first; what has not changed is not done again.',
      args: [{ name: '<image>', about: 'NAME, or NAME@sha256:… for one that is there', completes: 'recipes' }],
      options: [
        data,
        { flags: '--place <places>', about: 'only there: root, container, vm, separated by commas' },
        { flags: '--only <text>', about: 'only tests whose name contains this; nothing is kept of such a run' },
        { flags: '--junit <file>', about: 'write the report as JUnit XML too', completes: 'files' },
        { flags: '--watch', about: 'run again what a change of recipe or tests concerns, until interrupted' },
      ],
      examples: [
        'muster image test compute',
        'muster image test compute --only sshd --watch',
        'muster image test compute --place root,container --junit tests.xml',
      ],
      action: async () => (await import('./commands/image-test.ts')).test,
      stopsItself: true,
    },
    {
      name: 'learn',
      about: 'Write a first set of tests for an image from a system that is known to be good',
      details:
        'The system is a directory that holds a root, an image (image:NAME), a machine (ssh:HOST, ssh://USER@HOST:PORT) or, as /, this one. ' +
        'What was asked for, starts, may log in, is mounted and set becomes checks in images/NAME/tests/learned.yaml; of a machine, what runs ' +
        'and listens in learned-running.yaml. Kinds: package, service, user, group, file, mount, kernel-param, port.',
      args: [{ name: '<name>', about: 'image of the site the tests are for', completes: 'recipes' }],
      options: [
        data,
        { flags: '--from <system>', about: 'DIR, image:NAME, ssh:HOST or /', completes: 'directories' },
        { flags: '--kinds <kinds>', about: 'only these, separated by commas' },
        { flags: '--versions', about: 'packages with their versions' },
        { flags: '--to <file>', about: 'write to this file instead; - prints them', completes: 'files' },
        force,
        { flags: '--ssh-config <file>', about: 'settings for ssh, instead of ~/.ssh/config', completes: 'files' },
      ],
      examples: [
        'muster image learn compute --from ssh:n001',
        'muster image learn compute --from /srv/roots/compute --kinds package,service',
        'muster image learn compute --from image:compute --to -',
      ],
      action: async () => (await import('./commands/image-learn.ts')).learn,
      stopsItself: true,
    },
    {
      name: 'report',
      about: 'Show the test report that is kept with an image',
      args: [reference],
      options: [data, { flags: '--junit <file>', about: 'write the report as JUnit XML too', completes: 'files' }],
      examples: ['muster image report compute'],
      action: async () => (await import('./commands/image-test.ts')).report,
    },
    {
      name: 'ls',
      about: 'List images, newest first',
      args: [{ name: '[name]', about: 'only those of this name', completes: 'images' }],
      options: [data, { flags: '-a, --all', about: 'also those that are not the newest of their name' }],
      examples: ['muster image ls', 'muster image ls compute --all'],
      action: async () => (await import('./commands/image.ts')).ls,
    },
    {
      name: 'show',
      about: 'Show an image: its artefacts, where it comes from, who shares its parts',
      args: [reference],
      options: [
        data,
        { flags: '--packages', about: 'list its packages' },
        { flags: '--largest', about: 'list its largest packages and directories' },
        { flags: '--path <artefact>', about: 'print the path of an artefact, such as kernel or squashfs' },
      ],
      examples: [
        'muster image show compute',
        'muster image show compute --largest',
        'muster image show compute --path kernel',
      ],
      action: async () => (await import('./commands/image.ts')).show,
    },
    {
      name: 'log',
      about: 'Print the log of a build: of the last one of a name, also when it failed, or of an image',
      args: [reference],
      options: [data],
      examples: ['muster image log compute', 'muster image log compute@sha256:5d07'],
      action: async () => (await import('./commands/image.ts')).log,
    },
    {
      name: 'diff',
      about: 'Compare two images: packages, files, size by directory',
      args: [
        { ...reference, name: '<before>' },
        { ...reference, name: '[after]', about: 'the newest of the same name unless given' },
      ],
      options: [
        data,
        { flags: '--files', about: 'every file, not only how many' },
        { flags: '--exit-code', about: 'exit status 1 when there is a difference' },
      ],
      examples: ['muster image diff compute@sha256:5d07 compute', 'muster image diff base compute --files'],
      action: async () => (await import('./commands/image.ts')).diff,
    },
    {
      name: 'verify',
      about: 'Read every byte of one image, or of all, and compare with its digests',
      args: [{ ...reference, name: '[image]' }],
      options: [
        data,
        { flags: '--discard', about: 'take damaged artefacts away, so that they are built or pulled again' },
      ],
      examples: ['muster image verify', 'muster image verify compute'],
      action: async () => (await import('./commands/image.ts')).verify,
    },
    {
      name: 'rm',
      about: 'Take an image off the list; its bytes go with the next gc',
      args: [reference],
      options: [data, { flags: '-y, --yes', about: 'do not ask' }],
      examples: ['muster image rm compute@sha256:5d07'],
      action: async () => (await import('./commands/image.ts')).rm,
    },
    {
      name: 'gc',
      about: 'Remove what no image needs: artefacts, and layers and packages no build used for a while',
      options: [
        data,
        { flags: '--dry-run', about: 'only say what would be removed' },
        { flags: '--unused <age>', about: 'keep layers and packages a build used within this time', default: '14d' },
        { flags: '--grace <age>', about: 'keep everything that was written within this time', default: '1h' },
      ],
      examples: ['muster image gc --dry-run', 'muster image gc --unused 1d'],
      action: async () => (await import('./commands/image.ts')).gc,
    },
    {
      name: 'export',
      about: 'Write an image for somebody else: a directory of plain files, an OCI layout, a tar',
      args: [reference, { name: '<path>', about: 'directory or file to make', completes: 'files' }],
      options: [
        data,
        {
          flags: '--format <format>',
          about: 'what to write',
          choices: ['directory', 'oci', 'tar'],
          default: 'directory',
        },
      ],
      examples: [
        'muster image export compute /srv/boot/compute',
        'muster image export compute compute.oci --format oci',
      ],
      action: async () => (await import('./commands/image-build.ts')).exportTo,
      stopsItself: true,
    },
    {
      name: 'import',
      about: 'Give an image that was built elsewhere a manifest, to boot it and to build on it',
      details:
        'Say what it is with one of --tree, --tar, --oci, --squashfs; nothing of these for a directory made by `muster image export`.',
      args: [
        { name: '<name>', about: 'name it gets' },
        { name: '[dir]', about: 'directory made by export', completes: 'directories' },
      ],
      options: [
        data,
        { flags: '--tree <dir>', about: 'a directory that holds a root', completes: 'directories' },
        { flags: '--tar <file>', about: 'an archive of a root', completes: 'files' },
        { flags: '--oci <reference>', about: 'docker://…, oci:DIR, oci-archive:FILE, docker-archive:FILE' },
        { flags: '--squashfs <file>', about: 'a root as squashfs, kept as it is', completes: 'files' },
        { flags: '--kernel <file>', about: 'its kernel', completes: 'files' },
        { flags: '--initrd <file>', about: 'its initramfs', completes: 'files' },
        { flags: '--arch <arch>', about: "its architecture; this machine's unless given", choices: ['amd64', 'arm64'] },
      ],
      examples: [
        'muster image import rescue --squashfs live.squashfs --kernel vmlinuz --initrd initrd.img',
        'muster image import tools --oci oci-archive:tools.tar',
        'muster image import compute /mnt/usb/compute',
      ],
      action: async () => (await import('./commands/image-build.ts')).importFrom,
      stopsItself: true,
    },
    {
      name: 'shell',
      about: 'Open a shell in a copy of an image that is thrown away afterwards',
      args: [reference, { name: '[command...]', about: 'run this instead of a shell' }],
      options: [data, { flags: '--network', about: 'with the network of this machine' }],
      examples: ['muster image shell compute', 'muster image shell compute -- slurmd -V'],
      action: async () => (await import('./commands/image-build.ts')).shell,
      stopsItself: true,
    },
    {
      name: 'sign',
      about: 'Sign an image with a key the site trusts',
      details:
        'The signature is of the manifest, which names everything else by digest. A signing command gets the manifest on its ' +
        'standard input and prints the signature: for keys in an HSM, or in the secrets of a CI system.',
      args: [reference],
      options: [data, signingKey, signingCommand, publicKey],
      examples: [
        'muster image sign compute --signing-key /etc/muster/ci.pem',
        "muster image sign compute --signing-command 'hsm-sign ci' --public ed25519:…",
      ],
      action: async () => (await import('./commands/image-sign.ts')).sign,
    },
    {
      name: 'promote',
      about: 'Let a channel point to an image; nodes that follow it get it with their next boot',
      details: 'Refused unless the image has shown what `channels` of site.yaml asks for. Reboots nobody.',
      args: [
        { ...reference, about: 'NAME for the newest, NAME@sha256:…, or NAME@CHANNEL for what that points to' },
        { name: '<channel>', about: 'such as stable' },
      ],
      options: [why],
      examples: [
        'muster image promote compute dev',
        'muster image promote compute@staging stable --reason "soaked a week"',
      ],
      action: async () => (await import('./commands/channel.ts')).promote,
    },
    {
      name: 'rollback',
      about: 'Take the last move of a channel back',
      args: [channel],
      options: [why],
      examples: ['muster image rollback compute@stable --reason "slurmd does not start"'],
      action: async () => (await import('./commands/channel.ts')).rollback,
    },
    {
      name: 'history',
      about: 'Show every move of a channel: what to, when, by whom and why',
      args: [channel],
      examples: ['muster image history compute@stable'],
      action: async () => (await import('./commands/channel.ts')).history,
    },
    {
      name: 'channels',
      about: 'List channels and what they point to',
      examples: ['muster image channels'],
      action: async () => (await import('./commands/channel.ts')).channels,
    },
    {
      name: 'forget',
      about: 'Forget a channel, as that of a branch that was merged, and the images that only it pointed to',
      args: [channel],
      examples: ['muster image forget compute@feature-x'],
      action: async () => (await import('./commands/channel.ts')).forget,
    },
    {
      name: 'push',
      about: 'Send an image to a server; only what it does not have',
      args: [reference, { name: '[server]', about: 'its URL or socket; --server or MUSTER_SERVER unless given' }],
      options: [data],
      examples: ['muster image push compute https://muster.example:7171'],
      action: async () => (await import('./commands/image-transfer.ts')).push,
    },
    {
      name: 'pull',
      about: 'Fetch an image from a server; only what is not here',
      args: [
        { ...reference, completes: undefined },
        { name: '[server]', about: 'its URL or socket; --server or MUSTER_SERVER unless given' },
      ],
      options: [data],
      examples: ['muster image pull compute https://muster.example:7171'],
      action: async () => (await import('./commands/image-transfer.ts')).pull,
    },
  ],
}

/** `muster ci …`: what CI systems call. */
export const ci: CommandSpec = {
  name: 'ci',
  about: 'Continuous integration: from a commit to a channel in one command',
  commands: [
    {
      name: 'run',
      about: 'Check the site, then build, test, sign, push and promote its images',
      details:
        'Signs where a key is given, pushes and promotes where a server is (--server, MUSTER_SERVER). The channel is that of the branch: dev for ' +
        'the main one, its own name for any other. What fails stops that image; the exit status is then 1. Images that do not start from each ' +
        'other are built at once, as many as there are cores and as fit into the free memory, reckoned with 2 GiB each.',
      args: [{ name: '[names...]', about: 'images of the site; all of them unless given', completes: 'recipes' }],
      options: [
        data,
        locked,
        signingKey,
        signingCommand,
        publicKey,
        { flags: '--jobs <count>', about: 'how many images at once; as many as cores unless given' },
        { flags: '--memory <size>', about: 'memory for all of them; what is free unless given' },
        { flags: '--channel <name>', about: 'promote to this one, whatever the branch' },
        { flags: '--summary <file>', about: 'write tests, package changes and sizes as Markdown', completes: 'files' },
      ],
      examples: [
        'muster ci run --locked --summary summary.md',
        'muster ci run compute --channel staging --json',
        'muster ci run --jobs 4 --memory 16GiB',
      ],
      action: async () => (await import('./commands/ci.ts')).run,
      stopsItself: true,
    },
    {
      name: 'init',
      about: 'Write the pipeline file of a CI system that calls muster ci run',
      args: [{ name: '<system>', about: 'which CI system', choices: ['gitlab', 'github'] }],
      options: [force],
      examples: ['muster ci init gitlab'],
      action: async () => (await import('./commands/ci.ts')).init,
    },
  ],
}

/** `muster key …`: whose signatures count. */
export const key: CommandSpec = {
  name: 'key',
  about: 'Keys that sign images: whom the site trusts',
  details:
    'Work on a checkout of the site: which keys are trusted, until when, and which are revoked stands in site.yaml.',
  commands: [
    {
      name: 'new',
      about: 'Make a key, and name its public half in site.yaml',
      args: [{ name: '<name>', about: 'what the site calls it, such as ci' }],
      options: [
        { ...signingKey, about: 'file to write the private half to, outside the site' },
        { flags: '--until <day>', about: 'last day on which new signatures of it are taken' },
        message,
      ],
      examples: ['muster key new ci --signing-key /etc/muster/ci.pem --until 2027-12-31'],
      action: async () => (await import('./commands/key.ts')).create,
    },
    {
      name: 'ls',
      about: 'List the keys the site trusts, or once did',
      examples: ['muster key ls'],
      action: async () => (await import('./commands/key.ts')).ls,
    },
    {
      name: 'revoke',
      about: 'Believe nothing any more that a key ever signed',
      args: [{ name: '<name>', about: 'name of the key' }],
      options: [message],
      examples: ['muster key revoke ci'],
      action: async () => (await import('./commands/key.ts')).revoke,
    },
  ],
}

export const module: CommandSpec = {
  name: 'module',
  about: 'Shell modules: small steps that images share',
  commands: [
    {
      name: 'ls',
      about: 'List the modules of the site and of the repositories it pins',
      options: [data],
      examples: ['muster module ls'],
      action: async () => (await import('./commands/module.ts')).ls,
    },
    {
      name: 'plan',
      about: 'Show in which order modules are installed, with those they require',
      args: [{ name: '<modules...>', about: 'names of modules', completes: 'modules' }],
      options: [data],
      examples: ['muster module plan lmod spack'],
      action: async () => (await import('./commands/module.ts')).plan,
    },
  ],
}
