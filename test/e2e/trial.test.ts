import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openImageStore } from '../../src/images/store/store.ts'
import { readTests } from '../../src/images/tests/definitions.ts'
import type { TestReport } from '../../src/images/tests/report.ts'
import { testImage } from '../../src/images/tests/test-image.ts'
import { MUSTER, start } from '../cli/testing.ts'
import { processesWith } from '../images/testing.ts'
import { type Cluster, makeCluster } from './testing.ts'

/** Tests of an image with `where: vm`: its kernel, our initramfs, its agent, in a machine of their own. */
const PASSING = `where: vm
kernel-param:
  kernel.hostname: { value: muster-test }
mount:
  /: { exists: true, filesystem: overlay }
service:
  muster-agent: { enabled: true, running: true }
command:
  uname -r: { exit-status: 0, stdout: [/^6\\.\\d+.*-cloud-amd64$/] }
  cat /proc/cmdline: { exit-status: 0, stdout: [muster.root=squashfs, systemd.hostname=muster-test] }
  no-such-program: { exit-status: 127 }
  sh /run/muster-tests/hello.sh: { exit-status: 0, stdout: [ok 1 - hello] }
addr:
  # Of this machine: what answers inside is the boot server alone.
  tcp://10.0.2.2:22: { reachable: false, timeout: 3000 }
  tcp://10.0.2.100:7180: { reachable: true, timeout: 10000 }
exec:
  hello: { run: [sh, hello.sh], reads: tap }
`
const FAILING = 'where: vm\nfile:\n  /etc/image-release: { exists: true, mode: "0600" }\n'

let cluster: Cluster
let tests: string
beforeAll(async () => {
  cluster = await makeCluster()
  tests = join(cluster.site, 'images/tried/tests')
  await mkdir(tests, { recursive: true })
  await writeFile(join(tests, '../image.yaml'), 'from: { image: node }\noutputs: [squashfs]\n')
  await writeFile(join(tests, 'hello.sh'), 'echo 1..1\necho "ok 1 - hello"\n')
  await writeFile(join(tests, 'works.yaml'), PASSING)
})
afterAll(() => cluster[Symbol.asyncDispose]())

const words = (): string => `image test tried --json --site ${cluster.site} --data ${cluster.data}`
const machines = async (): Promise<string[]> =>
  (await processesWith(join(cluster.data, 'images/blobs'))).filter(line => line.includes('qemu'))

it('an image boots, and passes its tests', async () => {
  const ran = await cluster.muster(words())
  expect(ran).toMatchObject({ status: 0 })
  const { places, results } = JSON.parse(ran.stdout) as TestReport
  expect(places).toEqual(['vm'])
  expect(results.map(({ name, attribute, status }) => `${name} ${attribute}: ${status}`)).toEqual([
    'kernel.hostname value: passed',
    '/ exists: passed',
    '/ filesystem: passed',
    'muster-agent enabled: passed',
    'muster-agent running: passed',
    'uname -r exit-status: passed',
    'uname -r stdout: passed',
    'cat /proc/cmdline exit-status: passed',
    'cat /proc/cmdline stdout: passed',
    'no-such-program exit-status: passed',
    'sh /run/muster-tests/hello.sh exit-status: passed',
    'sh /run/muster-tests/hello.sh stdout: passed',
    'tcp://10.0.2.2:22 reachable: passed',
    'tcp://10.0.2.100:7180 reachable: passed',
    'hello 1 hello: passed',
  ])
  expect(await machines()).toEqual([])
})

it('a test that fails says what was expected and what was found', async () => {
  await writeFile(join(tests, 'fails.yaml'), FAILING)
  const ran = await cluster.muster(`${words()} --only fails.yaml`)
  await rm(join(tests, 'fails.yaml'))
  expect(ran).toMatchObject({ status: 1 })
  const { results } = JSON.parse(ran.stdout) as TestReport
  expect(results).toMatchObject([
    { place: 'vm', attribute: 'exists', status: 'passed' },
    { place: 'vm', attribute: 'mode', status: 'failed', expected: '"0600"', found: '"0644"' },
  ])
})

it.each(['SIGKILL', 'SIGINT'] as const)('the machine ends with whoever started it, by %s', async signal => {
  await using program = start(MUSTER, words().split(' '))
  await cluster.until('the machine runs', async () => ((await machines()).length > 0 ? true : undefined))
  program.child.kill(signal)
  await program.ended
  await cluster.until('it has ended', async () => ((await machines()).length === 0 ? true : undefined))
  expect(await machines()).toEqual([])
})

it('nothing but the command line knows how to boot one', async () => {
  const store = await openImageStore(join(cluster.data, 'images'))
  const options = {
    store,
    image: await store.resolve('tried'),
    tests: await readTests(tests, 'images/tried/tests'),
    siteDir: cluster.site,
    signal: new AbortController().signal,
  }
  await expect(testImage(options)).rejects.toThrow('nothing here can boot an image in a virtual machine')
})

it('a program outside cannot look into it, and that is said before it boots', async () => {
  await writeFile(join(tests, 'outside.yaml'), 'where: vm\nexec:\n  scan: { run: [true], on: outside }\n')
  const ran = await cluster.muster(words())
  await rm(join(tests, 'outside.yaml'))
  expect(ran.status).toBe(1)
  expect(ran.stderr).toContain('no program outside can look into a virtual machine')
  expect(ran.stderr).toContain('images/tried/tests/outside.yaml:3')
})
