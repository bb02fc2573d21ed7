/** The images of examples/site, with real packages: built twice, run as a container, booted as a machine. */
// oxlint-disable-next-line no-restricted-imports -- the test watches a machine's console while it runs
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { MUSTER, ROOT, run } from '../cli/testing.ts'
import { reaped } from '../reaped.ts'

const MINUTES = 60_000
let dir: string
let site: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-debian-'))
  site = join(dir, 'site')
  await cp(join(ROOT, 'examples/site'), site, { recursive: true })
})
afterAll(() => rm(dir, { recursive: true, force: true }))

async function muster(...args: string[]): Promise<string> {
  const ran = await run(MUSTER, args, { timeout: 30 * MINUTES })
  if (ran.status !== 0) throw new Error(`muster ${args.join(' ')}: ${ran.stderr}${ran.stdout}`)
  return ran.stdout
}

const build = async (
  data: string,
  name: string,
): Promise<{ digest: string; manifest: { os: unknown; source?: unknown } }> =>
  JSON.parse(await muster('image', 'build', name, '--site', site, '--data', join(dir, data), '--json')) as never

test(
  'base and compute: two builds in two places give the same digest; the second one only reads the lock',
  async () => {
    const first = [await build('one', 'base'), await build('one', 'compute')]
    const second = [
      JSON.parse(
        await muster(
          'image',
          'build',
          'base',
          'compute',
          '--locked',
          '--site',
          site,
          '--data',
          join(dir, 'two'),
          '--json',
        ),
      ) as typeof first,
    ].flat()
    expect(second.map(image => image.digest)).toEqual(first.map(image => image.digest))
    expect(first[1]?.manifest.os).toEqual({ id: 'debian', version: '12', name: 'Debian GNU/Linux 12 (bookworm)' })

    const shown = JSON.parse(
      await muster('image', 'show', 'compute', '--packages', '--data', join(dir, 'one'), '--json'),
    ) as { name: string }[]
    const names = shown.map(one => one.name)
    // From the recipe, from a module, and from the group's own file.
    expect(names).toEqual(expect.arrayContaining(['slurmd', 'munge', 'environment-modules', 'numactl']))
    await rm(join(dir, 'two'), { recursive: true })
  },
  30 * MINUTES,
)

test(
  'the steps of compute left what they should in the root',
  async () => {
    const script = `
      cat /etc/sysctl.d/60-compute.conf; grep ^PasswordAuthentication /etc/ssh/sshd_config; stat -c '%a %U' /scratch /var/spool/slurmd /var/tmp
      cat /etc/motd; tail -n 1 /etc/environment-modules/modulespath; ls /etc/security/limits.d; cat /etc/image-release
      ls /etc/ssh/ssh_host_* /etc/munge/munge.key /boot/initrd* 2>/dev/null; slurmd -V; /usr/lib/muster/muster-agent --once`
    const data = join(dir, 'one')
    const said = await muster('image', 'shell', 'compute', '--data', data, '--', 'sh', '-c', script)
    expect(said).toContain('vm.swappiness = 1')
    expect(said).toContain('PasswordAuthentication no')
    expect(said).toContain('1777 root\n755 slurm\n1777 root\n')
    expect(said).toContain('demo: compute node, image compute.')
    expect(said).toContain('/opt/modulefiles\n60-hpc.conf\n')
    expect(said).toMatch(/^IMAGE_NAME=compute\nIMAGE_INPUTS=sha256:[0-9a-f]{64}\nIMAGE_TIME=\S+Z\nslurm-wlm 22\.05/m)
    expect(said).toMatch(/\{"hostname":"build","image":"","name":"compute","inputs":"sha256:[0-9a-f]{64}"/)
  },
  5 * MINUTES,
)

/** Without cgroups and limits of its own: it must also run where the test itself is in a container. */
const PODMAN = `
umount -l /sys/fs/cgroup/unified 2>/dev/null || :
exec podman --root "$PWD/c/root" --runroot "$PWD/c/run" --tmpdir "$PWD/c/tmp" --storage-driver vfs --cgroup-manager=cgroupfs \\
  --events-backend=none run --quiet --rm --network=none --cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \\
  oci:compute.oci:latest sh -c 'slurmd -V; . /etc/image-release; echo $IMAGE_NAME'`

test(
  'exported as an OCI layout it runs in a container runtime',
  async () => {
    const layout = join(dir, 'compute.oci')
    await muster('image', 'export', 'compute', layout, '--format', 'oci', '--data', join(dir, 'one'))
    const { stdout } = await exec('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', PODMAN], {
      cwd: dir,
      timeout: 10 * MINUTES,
    })
    expect(stdout.toString('utf8')).toMatch(/^slurm-wlm 22\.05\S*\ncompute\n$/)
  },
  15 * MINUTES,
)

test(
  'kernel and cpio root boot to a login, and the agent says what runs',
  async () => {
    const [kernel, root] = await Promise.all(
      ['kernel', 'cpio.zst'].map(async type =>
        (await muster('image', 'show', 'compute', '--path', type, '--data', join(dir, 'one'))).trim(),
      ),
    )
    const machine = [
      '-m',
      '2048',
      '-smp',
      '2',
      '-accel',
      'tcg,thread=multi',
      '-cpu',
      'max',
      '-nographic',
      '-no-reboot',
      '-nic',
      'none',
    ]
    const qemu = reaped(
      spawn(
        'qemu-system-x86_64',
        [...machine, '-kernel', kernel ?? '', '-initrd', root ?? '', '-append', 'console=ttyS0 systemd.show_status=0'],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      ),
    )
    let console = ''
    const isUp = (): boolean => /login:/.test(console) && /muster-agent: \{.*\}/.test(console)
    await new Promise<void>((resolve, reject) => {
      qemu.stdout.on('data', (chunk: Buffer) => {
        console += chunk.toString('latin1')
        if (isUp()) resolve()
      })
      qemu.once('exit', () => reject(new Error(`the machine ended:\n${console}`)))
    })
    const ended = once(qemu, 'exit')
    qemu.kill('SIGKILL')
    await ended
    expect(console).not.toMatch(/Kernel panic|emergency mode/)
    expect(console).toMatch(/"name":"compute".*"kernel":"6\.\d+\.\d+-\d+-cloud-amd64"/)
  },
  20 * MINUTES,
)

test('the manifest lists every artefact the recipe asks for', async () => {
  const manifest = JSON.parse(await muster('image', 'show', 'base', '--data', join(dir, 'one'), '--json')) as {
    artefacts: { type: string }[]
  }
  expect(manifest.artefacts.map(one => one.type)).toEqual([
    'kernel',
    'initrd',
    'squashfs',
    'cpio.zst',
    'files',
    'packages',
    'sbom',
    'log',
    'lock',
  ])
  const sbom = JSON.parse(
    await readFile(
      (await muster('image', 'show', 'base', '--path', 'sbom', '--data', join(dir, 'one'))).trim(),
      'utf8',
    ),
  ) as { spdxVersion: string; packages: unknown[] }
  expect(sbom.spdxVersion).toBe('SPDX-2.3')
  expect(sbom.packages.length).toBeGreaterThan(100)
})
