import { describe, expect, test } from 'vitest'
import { type Base, OUTPUTS, Recipe } from './recipe.ts'
import { problemsOf } from './testing.ts'

const fromOf = (from: unknown): Base => Recipe.parse({ from }).from

/** One mistake in images/base/image.yaml, and the lines that tell it, without the name of the file. */
type Case = readonly [mistake: string, text: string, ...lines: string[]]

function each(cases: readonly Case[]): void {
  test.each(cases)('%s', async (_, text, ...lines) => {
    const file = 'images/base/image.yaml'
    expect(await problemsOf({ [file]: text })).toEqual(lines.map(line => `${file}:${line}`))
  })
}

/** Behind a first line that is right. */
const more = (text: string): string => `from: { tar: root.tar }\n${text}`

test('a recipe says as little as where it starts', () => {
  expect(Recipe.parse({ from: { tar: 'root.tar' } })).toEqual({
    from: { kind: 'tar', settings: 'root.tar' },
    vars: {},
    repositories: {},
    packages: [],
    files: {},
    steps: [],
    prune: [],
    limits: {},
    outputs: ['squashfs', 'cpio.zst'],
  })
})

describe('what an image starts from', () => {
  test.each<readonly [string, unknown, Base]>([
    [
      'a suite of Debian',
      { debian: 'bookworm' },
      { kind: 'debian', settings: { suite: 'bookworm', components: ['main'] } },
    ],
    [
      'Debian in full',
      {
        debian: {
          suite: 'bookworm-updates',
          mirrors: ['http://mirror.example/debian', 'https://other.example/debian', 'file:///srv/debian', 'ftp://a/b'],
          components: ['main', 'non-free-firmware'],
          keyring: 'keys/debian.gpg',
        },
      },
      {
        kind: 'debian',
        settings: {
          suite: 'bookworm-updates',
          mirrors: ['http://mirror.example/debian', 'https://other.example/debian', 'file:///srv/debian', 'ftp://a/b'],
          components: ['main', 'non-free-firmware'],
          keyring: 'keys/debian.gpg',
        },
      },
    ],
    [
      'a release, which YAML takes for a number',
      { dnf: 9 },
      { kind: 'dnf', settings: { release: '9', family: 'redhat' } },
    ],
    ['a release as text', { dnf: '15.6' }, { kind: 'dnf', settings: { release: '15.6', family: 'redhat' } }],
    [
      'dnf in full',
      { dnf: { release: 15.6, family: 'suse', database: '/usr/lib/sysimage/rpm', platform: 'platform:el9' } },
      {
        kind: 'dnf',
        settings: { release: '15.6', family: 'suse', database: '/usr/lib/sysimage/rpm', platform: 'platform:el9' },
      },
    ],
    ['an archive', { tar: '/srv/root.tar.zst' }, { kind: 'tar', settings: '/srv/root.tar.zst' }],
    ['a directory', { directory: '../roots/a b' }, { kind: 'directory', settings: '../roots/a b' }],
    ['another image', { image: 'base' }, { kind: 'image', settings: 'base' }],
    [
      'a base of the site’s own',
      { nix: { flake: '.#root' } },
      { kind: 'own', name: 'nix', settings: { flake: '.#root' } },
    ],
    ['one that wants no settings', { nix: null }, { kind: 'own', name: 'nix', settings: null }],
    ...['docker://registry.example/a/b:1', 'oci:layout:tag', 'oci-archive:a.tar', 'docker-archive:a.tar:b:1'].map(
      oci => [oci, { oci }, { kind: 'oci' as const, settings: oci }] as const,
    ),
  ])('%s', (_, from, base) => {
    expect(fromOf(from)).toEqual(base)
  })

  each([
    ['nothing at all', '', '1:1: from: is missing'],
    ['nothing, but something else', 'packages: [bash]\n', '1:1: from: is missing'],
    ['a word', 'from: debian\n', '1:7: from: must be a map'],
    ['a list', 'from: [debian, bookworm]\n', '1:7: from: must be a map'],
    ['null', 'from: ~\n', '1:7: from: must be a map'],
    ['no base', 'from: {}\n', '1:7: from: is empty: it must name one base'],
    ['two bases', 'from: { debian: bookworm, tar: a.tar }\n', '1:7: from: has debian and tar: it must name one base'],
    [
      'a base of ours and one of the site’s',
      'from:\n  nix: 1\n  image: other\n',
      '2:3: from: has image and nix: it must name one base',
    ],
    ['a name no file has', 'from: { Debian: bookworm }\n', '1:9: from.Debian: is not a kind of base'],
    ['Debian without a suite', 'from:\n  debian: { components: [main] }\n', '2:3: from.debian.suite: is missing'],
    ['a suite that is none', 'from: { debian: "a b" }\n', '1:9: from.debian.suite: is not a suite such as bookworm'],
    [
      'the same in full',
      'from: { debian: { suite: "a b" } }\n',
      '1:26: from.debian.suite: is not a suite such as bookworm',
    ],
    ['no mirrors', 'from: { debian: { suite: a, mirrors: [] } }\n', '1:38: from.debian.mirrors: must not be empty'],
    [
      'a mirror without a scheme',
      'from:\n  debian:\n    suite: bookworm\n    mirrors:\n      - http://a.example/\n      - mirror.example\n',
      '6:9: from.debian.mirrors.1: is not an address such as http://mirror.example/debian',
    ],
    [
      'a component with a space',
      'from: { debian: { suite: a, components: [main, "non free"] } }\n',
      '1:48: from.debian.components.1: is not a component such as main',
    ],
    [
      'a keyring outside',
      'from: { debian: { suite: a, keyring: ../keys.gpg } }\n',
      '1:38: from.debian.keyring: is not a path inside the folder of the recipe',
    ],
    [
      'a key of Debian’s that is none',
      'from: { debian: { suite: a, zzz: b } }\n',
      '1:29: from.debian.zzz: unknown key',
    ],
    [
      'a key of Debian’s with a letter too few',
      'from: { debian: { suite: a, mirror: [http://a] } }\n',
      '1:29: from.debian.mirror: unknown key — did you mean mirrors?',
    ],
    ['an archive as a number', 'from: { tar: 12 }\n', '1:14: from.tar: must be text: write it in quotes'],
    ['a suite as a number', 'from: { debian: 12 }\n', '1:9: from.debian.suite: must be text: write it in quotes'],
    ['dnf without a release', 'from: { dnf: { family: suse } }\n', '1:9: from.dnf.release: is missing'],
    [
      'a family nobody knows',
      'from: { dnf: { release: 9, family: arch } }\n',
      '1:36: from.dnf.family: must be one of redhat, suse',
    ],
    [
      'a database inside of nothing',
      'from: { dnf: { release: 9, database: x } }\n',
      '1:38: from.dnf.database: is not an absolute path',
    ],
    ['a list of releases', 'from: { dnf: [9] }\n', '1:14: from.dnf: must be a map'],
    [
      'a container image of no transport',
      'from: { oci: alpine }\n',
      '1:14: from.oci: is not docker://…, oci:…, oci-archive:… or docker-archive:…',
    ],
    ['an archive without a name', 'from: { tar: "" }\n', '1:14: from.tar: is not a path'],
    ['several directories', 'from: { directory: [a, b] }\n', '1:20: from.directory: must be text'],
    [
      'an image that is no name',
      'from: { image: Base }\n',
      '1:16: from.image: is not a name (lower-case letters, digits, - and _)',
    ],
  ])
})

describe('how large the root may be', () => {
  test.each<readonly [unknown, number]>([
    [4096, 4096],
    ['900 MB', 900_000_000],
    ['1.5GB', 1_500_000_000],
    ['2 GiB', 2_147_483_648],
    ['512m', 512_000_000],
  ])('%s is %d bytes', (size, bytes) => {
    expect(Recipe.parse({ from: { tar: 'a' }, limits: { size } }).limits).toEqual({ size: bytes })
  })

  each([
    ['a word', more('limits: { size: huge }\n'), '2:17: limits.size: is not a size such as 900 MB or 2 GB'],
    ['less than nothing', more('limits: { size: -5 GB }\n'), '2:17: limits.size: is not a size such as 900 MB or 2 GB'],
    ['an unknown unit', more('limits: { size: 5 GX }\n'), '2:17: limits.size: is not a size such as 900 MB or 2 GB'],
    ['nothing', more('limits: { size: 0 }\n'), '2:17: limits.size: must be at least 1'],
    ['nothing, with its unit', more('limits: { size: 0 B }\n'), '2:17: limits.size: must be at least 1'],
    ['half a byte', more('limits: { size: 0.5 }\n'), '2:17: limits.size: must be a whole number'],
    ['a limit of something else', more('limits: { files: 10 }\n'), '2:11: limits.files: unknown key'],
    [
      'a limit with a letter too few',
      more('limits: { siz: 1 GB }\n'),
      '2:11: limits.siz: unknown key — did you mean size?',
    ],
    ['no map', more('limits: 2 GB\n'), '2:9: limits: must be a map'],
  ])
})

describe('steps', () => {
  test('each is one of four kinds', () => {
    const steps = [
      { run: 'ldconfig' },
      { script: 'scripts/setup.sh', name: 'set up', network: true, env: { LEVEL: 3, QUIET: true, WHO: 'me' } },
      { ansible: 'ansible/play.yaml', vars: { rack: 1, list: [{ a: null }] } },
      { modules: ['slurm', 'munge'] },
    ]
    expect(Recipe.parse({ from: { tar: 'a' }, steps }).steps).toEqual([
      { run: 'ldconfig', network: false, env: {} },
      { script: 'scripts/setup.sh', name: 'set up', network: true, env: { LEVEL: '3', QUIET: 'true', WHO: 'me' } },
      { ansible: 'ansible/play.yaml', vars: { rack: 1, list: [{ a: null }] }, network: false, env: {} },
      { modules: ['slurm', 'munge'], network: false, env: {} },
    ])
  })

  each([
    ['no list', more('steps: { run: a }\n'), '2:8: steps: must be a list'],
    ['a word', more('steps:\n  - ldconfig\n'), '3:5: steps.0: must be a map'],
    [
      'one that does nothing',
      more('steps:\n  - run: a\n  - name: nothing\n'),
      '4:5: steps.1: does nothing: a step is one of run, script, ansible, modules',
    ],
    [
      'one that does two things',
      more('steps:\n  - run: a\n    script: b\n'),
      '3:5: steps.0: has run and script: a step is one of run, script, ansible, modules',
    ],
    [
      'one that does everything',
      more('steps:\n  - { modules: [a], ansible: a/b, script: c, run: d }\n'),
      '3:5: steps.0: has run and script and ansible and modules: a step is one of run, script, ansible, modules',
    ],
    ['an unknown key beside', more('steps:\n  - run: a\n    zzz: b\n'), '4:5: steps.0.zzz: unknown key'],
    ['nothing to run', more('steps:\n  - run: ""\n'), '3:10: steps.0.run: must not be empty'],
    [
      'a script outside',
      more('steps:\n  - script: ../b\n'),
      '3:13: steps.0.script: is not a path inside the folder of the recipe',
    ],
    [
      'a script of the system',
      more('steps:\n  - script: /b\n'),
      '3:13: steps.0.script: is not a path inside the folder of the recipe',
    ],
    [
      'dots on the way',
      more('steps:\n  - script: a/./b\n'),
      '3:13: steps.0.script: is not a path inside the folder of the recipe',
    ],
    [
      'a playbook beside the recipe, where everything would be its input',
      more('steps:\n  - ansible: play.yaml\n'),
      '3:14: steps.0.ansible: must be a playbook in a folder of its own, such as ansible/play.yaml',
    ],
    [
      'variables without a playbook',
      more('steps:\n  - run: a\n    vars: { a: 1 }\n'),
      '4:11: steps.0.vars: belongs to an ansible step',
    ],
    ['no modules', more('steps:\n  - modules: []\n'), '3:14: steps.0.modules: must not be empty'],
    [
      'a module that is no name',
      more('steps:\n  - modules: [slurm, Munge]\n'),
      '3:22: steps.0.modules.1: is not a name (lower-case letters, digits, - and _)',
    ],
    [
      'a network that may be',
      more('steps:\n  - run: a\n    network: maybe\n'),
      '4:14: steps.0.network: must be true or false',
    ],
    [
      'a variable the shell could not read',
      more('steps:\n  - run: a\n    env: { OK: 1, NOT-OK: 2 }\n'),
      '4:19: steps.0.env.NOT-OK: is not the name of an environment variable',
    ],
    [
      'a variable without a value',
      more('steps:\n  - run: a\n    env: { A: ~ }\n'),
      '4:15: steps.0.env.A: must be text',
    ],
    [
      'a variable that is a list',
      more('steps:\n  - run: a\n    env: { A: [1, 2] }\n'),
      '4:15: steps.0.env.A: must be text',
    ],
    [
      'a key with two letters swapped',
      more('steps:\n  - run: a\n    nmae: b\n'),
      '4:5: steps.0.nmae: unknown key — did you mean name?',
    ],
    [
      'a name that does not fit on a line',
      more(`steps:\n  - run: a\n    name: ${'a'.repeat(61)}\n`),
      '4:11: steps.0.name: must be at most 60',
    ],
  ])
})

describe('packages and repositories', () => {
  test.each([
    'bash',
    'g++',
    'libc6:arm64',
    'linux-image-*',
    '@core',
    'slurm=23.11.4-1',
    'x=1:2.0~rc1+b2',
    'python3.11',
  ])('%s', name => {
    expect(Recipe.parse({ from: { tar: 'a' }, packages: [name] }).packages).toEqual([name])
  })

  const NO_PACKAGE = 'is not the name of a package, with =VERSION where one is wanted'
  each([
    ['a package that would be an option', more('packages: [bash, -y]\n'), `2:18: packages.1: ${NO_PACKAGE}`],
    ['two in one', more('packages:\n  - bash zsh\n'), `3:5: packages.0: ${NO_PACKAGE}`],
    ['a version that is none', more('packages: [bash=]\n'), `2:12: packages.0: ${NO_PACKAGE}`],
    ['a number', more('packages: [389]\n'), '2:12: packages.0: must be text: write it in quotes'],
    ['no list', more('packages: bash\n'), '2:11: packages: must be a list'],
    [
      'a repository without an address',
      more('repositories:\n  extra: { suite: stable }\n'),
      '3:3: repositories.extra.url: is missing',
    ],
    [
      'an address that is none',
      more('repositories: { extra: { url: mirror } }\n'),
      '2:31: repositories.extra.url: is not an address such as http://mirror.example/debian',
    ],
    [
      'a repository that is no name',
      more('repositories: { Extra: { url: "http://a" } }\n'),
      '2:17: repositories.Extra: is not a name (lower-case letters, digits, - and _)',
    ],
    [
      'a key that lies elsewhere',
      more('repositories: { extra: { url: "http://a", key: /etc/key.gpg } }\n'),
      '2:48: repositories.extra.key: is not a path inside the folder of the recipe',
    ],
    [
      'a key with a letter too few',
      more('repositories: { extra: { url: "http://a", truste: true } }\n'),
      '2:43: repositories.extra.truste: unknown key — did you mean trusted?',
    ],
    [
      'trust in words',
      more('repositories: { extra: { url: "http://a", trusted: yes-please } }\n'),
      '2:52: repositories.extra.trusted: must be true or false',
    ],
  ])
})

describe('files', () => {
  test('by name, or with owner and mode', () => {
    const files = { '/etc/motd': 'motd', '/opt/tool': { source: 'tool', owner: 'ada', group: 'hpc', mode: '750' } }
    expect(Recipe.parse({ from: { tar: 'a' }, files }).files).toEqual({
      '/etc/motd': 'motd',
      '/opt/tool': { source: 'tool', owner: 'ada', group: 'hpc', mode: '0750' },
    })
  })

  each([
    [
      'a target inside of nothing',
      more('files: { etc/motd: motd }\n'),
      '2:10: files.etc/motd: is not an absolute path',
    ],
    ['a target that is a folder', more('files: { /etc/: motd }\n'), '2:10: files./etc/: is not an absolute path'],
    [
      'a target that climbs',
      more('files: { /etc/../motd: motd }\n'),
      '2:10: files./etc/../motd: is not an absolute path',
    ],
    [
      'a source outside',
      more('files: { /etc/motd: ../motd }\n'),
      '2:21: files./etc/motd: is not a path inside the folder of the recipe',
    ],
    [
      'a key that no image carries',
      more('files: { /etc/munge/munge.key: key }\n'),
      "2:10: files./etc/munge/munge.key: is taken out of every image: it is a secret, or must be each machine's own",
    ],
    [
      'a place that every image is cleaned of',
      more('files: { /tmp/deep/a: a }\n'),
      '2:10: files./tmp/deep/a: is taken out of every image, as all logs, caches, locks and temporary files are',
    ],
    ['no source', more('files:\n  /etc/motd: { mode: "0600" }\n'), '3:3: files./etc/motd.source: is missing'],
    [
      'a mode as a number',
      more('files: { /m: { source: m, mode: 0600 } }\n'),
      '2:33: files./m.mode: must be text: write it in quotes',
    ],
    [
      'a mode that is none',
      more('files: { /m: { source: m, mode: "0999" } }\n'),
      '2:33: files./m.mode: is not a file mode such as "0644"',
    ],
    [
      'an owner that is none',
      more('files: { /m: { source: m, owner: "a b" } }\n'),
      '2:34: files./m.owner: is not a user or group name',
    ],
    ['an unknown key', more('files: { /m: { source: m, zzz: 1 } }\n'), '2:27: files./m.zzz: unknown key'],
    [
      'a key with a letter too few',
      more('files: { /m: { source: m, onwer: a } }\n'),
      '2:27: files./m.onwer: unknown key — did you mean owner?',
    ],
  ])
})

describe('the kernel', () => {
  test.each<readonly [string, unknown, unknown]>([
    ['none', 'none', 'none'],
    ['any', {}, { version: '*', modules: [] }],
    ['one of them', { version: '6.1.*', modules: ['mlx5_core'] }, { version: '6.1.*', modules: ['mlx5_core'] }],
  ])('%s', (_, kernel, parsed) => {
    expect(Recipe.parse({ from: { tar: 'a' }, kernel }).kernel).toEqual(parsed)
  })

  each([
    [
      'a module that is a path',
      more('kernel: { modules: [mlx5_core, drivers/x] }\n'),
      '2:32: kernel.modules.1: is not the name of a kernel module',
    ],
    ['a word twisted', more('kernel: { versoin: x }\n'), '2:11: kernel.versoin: unknown key — did you mean version?'],
    [
      'a version as a number',
      more('kernel: { version: 6.1 }\n'),
      '2:20: kernel.version: must be text: write it in quotes',
    ],
    ['a version without a letter', more('kernel: { version: "" }\n'), '2:20: kernel.version: must not be empty'],
  ])
})

describe('the rest', () => {
  test('outputs are forms of the root', () => {
    expect(Recipe.parse({ from: { tar: 'a' }, outputs: [...OUTPUTS] }).outputs).toEqual([
      'squashfs',
      'cpio.zst',
      'cpio.gz',
      'erofs',
    ])
  })

  each([
    ['a key with a letter too few', more('package: [bash]\n'), '2:1: package: unknown key — did you mean packages?'],
    ['a key with two letters swapped', more('setps: []\n'), '2:1: setps: unknown key — did you mean steps?'],
    ['a key like no other', more('zzz: 1\n'), '2:1: zzz: unknown key'],
    ['an architecture by another name', more('arch: x86_64\n'), '2:7: arch: must be one of amd64, arm64'],
    ['no outputs', more('outputs: []\n'), '2:10: outputs: must not be empty'],
    [
      'an output nobody makes',
      more('outputs: [squashfs, iso]\n'),
      '2:21: outputs.1: must be one of squashfs, cpio.zst, cpio.gz, erofs',
    ],
    [
      'to prune what has no name',
      more('prune: [locales, docs]\n'),
      '2:18: prune.1: is not locales, documentation, caches or a path such as /usr/share/icons',
    ],
    ['values that are a list', more('vars: [a]\n'), '2:7: vars: must be a map'],
    ['a list where the recipe should be', '- from: a\n', '1:1: must be a map of keys and values'],
    ['a key twice', more('packages: [a]\npackages: [b]\n'), '3:1: the key "packages" is already on line 2'],
    [
      'several mistakes, in the order of the file',
      'arch: x\nfrom: {}\npackages: [-a, b, -c]\nsteps: [{}]\n',
      '1:7: arch: must be one of amd64, arm64',
      '2:7: from: is empty: it must name one base',
      `3:12: packages.0: is not the name of a package, with =VERSION where one is wanted`,
      `3:19: packages.2: is not the name of a package, with =VERSION where one is wanted`,
      '4:9: steps.0: does nothing: a step is one of run, script, ansible, modules',
    ],
  ])
})
