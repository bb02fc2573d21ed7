import { once } from 'node:events'
import { readFile, readdir } from 'node:fs/promises'
import { type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MUSTER, type Program, run, start } from '../cli/testing.ts'
import { filePackage, TINY_RPMS, rpmRepository } from './rpm.ts'
import { type Built, type Lab, makeLab, mountsBelow, processesWith, writeTree } from './testing.ts'

/** Whatever a step tries, what it gets to see is left in /result/NAME; a last line says whether it worked. */
const TRY = `
mkdir -p /result
try() {
  name=$1
  shift
  if "$@" >/result/$name 2>&1; then echo worked >>/result/$name; else echo failed >>/result/$name; fi
}
`

let lab: Lab
let built: Built
let server: Server
let victim: Program
let asked = 0
let canary: string
const result = (name: string): Promise<string> => lab.cat(built, `result/${name}`)

beforeAll(async () => {
  lab = await makeLab()
  canary = lab.path('outside')
  await writeTree(canary, { secret: 'of this machine\n' })
  server = createServer((_, response) => void response.end(`asked ${++asked}\n`)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  victim = start('sleep', ['86399'])
  const { port } = server.address() as AddressInfo
  const outside = `${canary}/secret`
  await lab.recipe(
    'cell',
    `
from: { directory: ../../../root }
outputs: [squashfs]
steps:
  - env: { CHOSEN: "1" }
    run: env >/tmp/env; mkdir -p /result; sort /tmp/env >/result/env
  - script: probe
  - script: network
  - name: with a network
    script: network
    network: true
    env: { NAME: open }
`,
    {
      probe: `${TRY}
try see cat ${outside}
try up cat ../../../../../../../../..${outside}
try root cat /proc/1/root${outside}
try cwd cat /proc/1/cwd/..${outside}
try write sh -c 'echo evil >/proc/1/root${canary}/evil'
try mount mount -t tmpfs none /home
try bind mount -o bind / /home
try kill kill -9 ${victim.child.pid}
try processes sh -c 'cat /proc/[0-9]*/cmdline | tr "\\\\0" " "'
try hostname hostname other
# What is written is what stands there already: were it to work, nothing would change.
for file in sys/kernel/core_pattern sys/vm/swappiness irq/default_smp_affinity; do
  try "set-$(echo $file | tr / _)" sh -c "read -r old </proc/$file; echo \\"\\$old\\" >/proc/$file"
done
try sysrq test -w /proc/sysrq-trigger
try capabilities grep -E '^(Cap|NoNewPrivs)' /proc/self/status
try descriptor cat /proc/self/fd/9/secret
try devices ls /dev
try self sh -c 'echo evil >>/run/muster/probe'
for dir in / /dev /tmp /run /dev/shm /home; do
  mknod $dir/zeros c 1 5
  mknod $dir/disk b 7 0
  try "zero-$(echo $dir | tr / _)" head -c 1 $dir/zeros
  try "disk-$(echo $dir | tr / _)" head -c 1 $dir/disk
  rm $dir/zeros $dir/disk
done
# Neither may keep the build waiting, nor outlive it.
sleep 86398 &
sleep 86398 >/dev/null 2>&1 </dev/null &
`,
      network: `${TRY}
try "\${NAME:-closed}" wget -q -O - http://127.0.0.1:${port}/
try "\${NAME:-closed}-devices" cat /proc/net/dev
try "\${NAME:-closed}-resolv" cat /etc/resolv.conf
`,
    },
  )
  // A lock that a script holds while it builds, say.
  const held = `exec 9<${canary}; exec "$@"`
  const words = ['image', 'build', 'cell', '--json', '--data', lab.data, '--site', lab.site]
  const { stdout, stderr } = await run('sh', ['-c', held, 'sh', MUSTER, ...words])
  if (stdout === '') throw new Error(stderr)
  built = { ...(JSON.parse(stdout) as Built), stages: {} }
})
afterAll(async () => {
  await victim[Symbol.asyncDispose]()
  server.closeAllConnections()
  server.close()
  await lab[Symbol.asyncDispose]()
})

describe('a step', () => {
  it('has an environment of its own, and nothing of whoever builds', async () => {
    const lines = (await result('env')).trim().split('\n')
    expect(Object.fromEntries(lines.map(line => line.split('=')))).toEqual({
      CHOSEN: '1',
      DEBIAN_FRONTEND: 'noninteractive',
      HOME: '/root',
      LANG: 'C.UTF-8',
      LC_ALL: 'C.UTF-8',
      MUSTER_ARCH: built.manifest.arch,
      MUSTER_IMAGE: 'cell',
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      PWD: '/',
      PYTHONDONTWRITEBYTECODE: '1',
      PYTHONHASHSEED: '0',
      SHLVL: '1',
      SOURCE_DATE_EPOCH: String(Date.parse(built.manifest.created) / 1000),
      TERM: 'dumb',
      TZ: 'UTC',
    })
  })

  it.each(['see', 'up', 'root', 'cwd'])('cannot read a file of this machine (%s)', async name => {
    expect(await result(name)).toMatch(/No such file or directory\nfailed\n$/)
  })

  it('cannot write to this machine', async () => {
    expect(await result('write')).toMatch(/\nfailed\n$/)
    expect(await readdir(canary)).toEqual(['secret'])
  })

  it.each(['mount', 'bind'])('cannot mount anything (%s)', async name => {
    expect(await result(name)).toMatch(/(permission denied|Operation not permitted).*\nfailed\n$/i)
  })

  it.each(['', 'dev', 'tmp', 'run', 'dev_shm', 'home'])('cannot use a device node that it makes in /%s', async dir => {
    expect(await result(`zero-_${dir}`)).toMatch(/Permission denied\nfailed\n$/)
    expect(await result(`disk-_${dir}`)).toMatch(/Permission denied\nfailed\n$/)
  })

  it('sees only its own processes, and can kill no other', async () => {
    expect(await result('kill')).toMatch(/No such process\nfailed\n$/)
    expect(victim.child.signalCode).toBeNull()
    const processes = await result('processes')
    expect(processes).toContain('/run/muster/probe')
    expect(processes).not.toMatch(/node|vitest|main\.ts/)
  })

  it('cannot change settings of this machine', async () => {
    expect(await result('hostname')).toMatch(/\nfailed\n$/)
    for (const name of ['sys_kernel_core_pattern', 'sys_vm_swappiness', 'irq_default_smp_affinity'])
      expect.soft(await result(`set-${name}`), name).toMatch(/\nfailed\n$/)
    expect(await result('sysrq')).toBe('failed\n')
    expect(hostname()).not.toBe('other')
  })

  it('has the capabilities of a container, and can get no others', async () => {
    const text = await result('capabilities')
    const bits = (name: string): bigint => BigInt(`0x${new RegExp(`^${name}:\\s+(\\w+)$`, 'm').exec(text)?.[1]}`)
    // chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, sys_chroot, mknod, audit_write, setfcap
    const usual = [0n, 1n, 3n, 4n, 5n, 6n, 7n, 8n, 18n, 27n, 29n, 31n].reduce((sum, bit) => sum | (1n << bit), 0n)
    for (const name of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb']) expect(bits(name) & ~usual).toBe(0n)
    expect(text).toMatch(/^NoNewPrivs:\s+1$/m)
  })

  it('gets no directory that somebody left open', async () => {
    expect(await result('descriptor')).toMatch(/No such file or directory\nfailed\n$/)
  })

  it('that asks a question gets no answer, and does not wait for one', async () => {
    const from = 'from: { directory: ../../../root }\noutputs: [squashfs]\n'
    await lab.recipe('asking', `${from}steps: [{ run: "read -r answer || echo nobody is there >/etc/asked" }]\n`)
    const { status } = await lab.muster(['image', 'build', 'asking'], { timeout: 30_000 })
    expect(status).toBe(0)
  })

  it('has the devices everybody needs, and no others', async () => {
    expect((await result('devices')).split('\n')).toEqual(
      expect.arrayContaining(['fd', 'full', 'null', 'random', 'tty', 'urandom', 'zero', 'worked']),
    )
    expect(await result('devices')).not.toMatch(/^(mem|kmem|sd.*|vd.*|nvme.*|loop.*|kvm|fuse|net)$/m)
  })

  it('cannot change its own script', async () => {
    expect(await result('self')).toMatch(/Read-only file system\nfailed\n$/)
    expect(await readFile(lab.path('site/images/cell/probe'), 'utf8')).not.toContain('\nevil')
  })

  it('takes what it has started with it', async () => {
    expect(await processesWith('sleep\u000086398')).toEqual([])
  })
})

describe('the network', () => {
  it('is not there', async () => {
    expect(await result('closed')).toMatch(/(refused|unreachable|can't connect).*\nfailed\n$/i)
    expect((await result('closed-devices')).match(/^ *\w+:/gm)?.map(name => name.trim())).toEqual(['lo:'])
  })

  it('is there for a step that asks for it, with the name servers of this machine', async () => {
    expect(await result('open')).toBe('asked 1\nworked\n')
    expect(await result('open-resolv')).toBe(`${await readFile('/etc/resolv.conf', 'utf8')}worked\n`)
    expect(asked).toBe(1)
  })

  it('leaves no name servers in the image', async () => {
    expect(Object.keys(await lab.list(built))).not.toContain('/etc/resolv.conf')
  })
})

describe('tools that work on the root from outside', () => {
  const leak = 'cat /proc/1/root/etc/passwd /proc/self/root/../etc/passwd >/etc/leak 2>/dev/null || :'

  it('do not let the scripts of packages see files of this machine', async () => {
    const hostile = filePackage('hostile', '1', { post: leak })
    await rpmRepository(lab.path('rpms'), [...TINY_RPMS, hostile])
    await lab.recipe(
      'scripts',
      `from: { dnf: 9 }\nrepositories: { tiny: { url: "file://${lab.path('rpms')}", trusted: true } }\n` +
        'packages: [tiny-shell, hostile]\noutputs: [squashfs]\n',
    )
    const one = await lab.build('scripts')
    expect(await lab.cat(one, 'etc/leak')).not.toContain(await readFile('/etc/passwd', 'utf8'))
  })

  it('do not let the tasks of a playbook see files of this machine', async () => {
    const play = `- hosts: all\n  gather_facts: false\n  tasks: [{ raw: "${leak}" }]\n`
    await lab.recipe(
      'tasks',
      'from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ ansible: play/site.yaml }]\n',
      { 'play/site.yaml': play },
    )
    const one = await lab.build('tasks')
    expect(await lab.cat(one, 'etc/leak')).not.toContain(await readFile('/etc/passwd', 'utf8'))
  })
})

it('leaves nothing mounted', async () => {
  expect(await mountsBelow(lab.dir)).toEqual([])
})
