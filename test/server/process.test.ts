// oxlint-disable-next-line no-restricted-imports -- a receiver of systemd's messages, in Python because Node has no such socket
import { spawn } from 'node:child_process'
import { access, chmod, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dial, follow } from '../../src/api/testing.ts'
import { type TestSite, makeSite, until } from '../../src/control/testing.ts'
import { exec } from '../../src/lib/exec.ts'
import { type Folder, MUSTER, collect, folder, muster, startMuster } from './muster.ts'

let site: TestSite
let place: Folder
let count = 0
const freshData = (): string => join(place.path, `data-${++count}`)
const start = (data = freshData(), args: readonly string[] = [], env = {}) =>
  startMuster({ site: site.dir, data, args, env })

beforeAll(async () => {
  site = await makeSite()
  place = await folder()
})
afterAll(async () => {
  await place[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

/** A server that will not start. */
const serveOn = async (listen: string, dir = site.dir, args: readonly string[] = []) => {
  const data = freshData()
  return { listen, data, ...(await muster(['serve', '--site', dir, '--data', data, '--listen', listen, ...args])) }
}

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o7777).toString(8)

describe('muster serve', () => {
  it.for(['SIGTERM', 'SIGINT'] as const)(
    'stops cleanly at %s: streams end, the socket is gone, exit status 0',
    async signal => {
      const data = freshData()
      await using server = await start(data)
      expect((await server.cli('site', 'apply', '--yes')).code).toBe(0)
      const follower = await follow(server.socket, '/api/v1/events/stream?after=0')
      await follower.received(1)
      const begin = performance.now()
      expect(await server.end(signal)).toEqual({ code: 0, signal: null })
      expect(performance.now() - begin).toBeLessThan(10_000)
      expect(await follower.ended).toBe(true)
      await expect(access(server.socket)).rejects.toMatchObject({ code: 'ENOENT' })
      expect(server.output.stderr).toBe('')
      expect(server.output.stdout).toMatch(/"msg":"stopping"/)
      // Everything in one file again: the log of SQLite was brought in.
      expect((await readdir(data)).sort()).toEqual(['boot', 'ca', 'images', 'state.db', 'state.db.lock'])
    },
  )

  it('stops though somebody holds a connection and says nothing', async () => {
    await using server = await start()
    const socket = await dial(Number(new URL(server.url).port))
    socket.on('error', () => {})
    expect((await server.ask('GET', '/healthz')).status).toBe(200)
    const late = new Promise<string>(resolve => setTimeout(resolve, 10_000, 'still running').unref())
    expect(await Promise.race([server.end('SIGTERM'), late])).toEqual({ code: 0, signal: null })
    socket.destroy()
  })

  it('keeps its data and its socket to itself', async () => {
    const data = freshData()
    await using server = await start(data)
    expect(await modeOf(data)).toBe('700')
    expect(await modeOf(server.socket)).toBe('600')
    for (const name of await readdir(data))
      expect([name, await modeOf(join(data, name))]).toEqual([
        name,
        ['boot', 'ca', 'images'].includes(name) ? '700' : '600',
      ])
  })

  it('logs a line of JSON for each request, with who and from where, and never a token', async () => {
    await using server = await start()
    const made = await server.cli('token', 'create', 'grafana', '--role', 'admin')
    const token = made.stdout.trim()
    expect(token).toMatch(/^muster_/)
    await server.ask('GET', '/api/v1/status?token=secret-in-query', { token })
    await server.ask('GET', '/api/v1/status', { token: `${token}x` })
    await server.ask('POST', '/api/v1/tokens', { token, body: { name: 'other', role: 'viewer', seconds: 60 } })
    await server.end('SIGTERM')
    const { stdout, stderr } = server.output
    const lines = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>)
    expect(
      lines
        .filter(line => line['msg'] === 'request')
        .map(({ method, path, status, actor, from }) => ({ method, path, status, actor, from })),
    ).toEqual([
      { method: 'POST', path: '/api/v1/tokens', status: 200, actor: 'root', from: 'unix socket' },
      { method: 'GET', path: '/api/v1/status', status: 200, actor: 'grafana', from: '127.0.0.1' },
      { method: 'GET', path: '/api/v1/status', status: 401, actor: undefined, from: '127.0.0.1' },
      { method: 'POST', path: '/api/v1/tokens', status: 200, actor: 'grafana', from: '127.0.0.1' },
    ])
    for (const secret of [token, token.slice(20), 'secret-in-query']) expect(stdout + stderr).not.toContain(secret)
  })
})

describe('a second server', () => {
  it('on the same data is refused with a clear message, and the first goes on', async () => {
    const data = freshData()
    await using first = await start(data)
    const second = await muster(['serve', '--site', site.dir, '--data', data, '--listen', '127.0.0.1:0'])
    expect(second).toMatchObject({ code: 1, stdout: '' })
    expect(second.stderr).toBe(
      `error: ${join(data, 'state.db')}: is in use\nhint:  another muster uses this data directory; stop it first\n`,
    )
    expect((await first.root('GET', '/api/v1/status')).status).toBe(200)
    expect((await first.cli('site', 'apply', '--yes')).code).toBe(0)
    // Nor did it take the lock away from the first.
    expect((await muster(['serve', '--site', site.dir, '--data', data, '--listen', '127.0.0.1:0'])).code).toBe(1)
  })

  it('on the same port is refused with a clear message, and the first goes on', async () => {
    await using first = await start()
    const { host } = new URL(first.url)
    const second = await muster(['serve', '--site', site.dir, '--data', freshData(), '--listen', host])
    expect(second.code).toBe(1)
    expect(second.stderr).toMatch(new RegExp(`^error: .*${host}.*in use|^error: .*in use.*${host}`, 'm'))
    expect(second.stderr).toMatch(/^hint: /m)
    expect(second.stderr).not.toMatch(/--debug| at /)
    expect((await first.ask('GET', '/healthz')).status).toBe(200)
  })

  it('starts where a killed one left its socket', async () => {
    const data = freshData()
    {
      await using first = await start(data)
      expect(await first.end('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' })
      expect((await stat(first.socket)).isSocket()).toBe(true)
    }
    await using second = await start(data)
    expect((await second.cli('status')).code).toBe(0)
  })
})

describe('an address', () => {
  it('beyond loopback is refused without TLS, and nothing listens', async () => {
    const addresses = ['0.0.0.0:0', '[::]:0', '192.0.2.1:7171', '127.evil.example:7171', '[::ffff:0.0.0.0]:0']
    for (const ended of await Promise.all(addresses.map(address => serveOn(address)))) {
      expect(ended).toMatchObject({ code: 2, stdout: '' })
      expect(ended.stderr).toContain('is not a loopback address: tokens would travel in clear')
      expect(ended.stderr).toContain('hint:  give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy')
      await expect(access(join(ended.data, 'muster.sock'))).rejects.toMatchObject({ code: 'ENOENT' })
    }
  })

  it('that is none is refused', async () => {
    const addresses = ['127.0.0.1', ':7171', '127.0.0.1:99999', '127.0.0.1:http', '::1:7171', '']
    for (const ended of await Promise.all(addresses.map(address => serveOn(address)))) {
      expect(ended).toMatchObject({ code: 2, stdout: '' })
      expect(ended.stderr).toContain(`${ended.listen} is not an address such as 127.0.0.1:7171 or [::1]:7171`)
    }
  })
})

describe('TLS', () => {
  it('works with a certificate of one’s own, for programs and for the command line', async () => {
    const [cert, key] = [join(place.path, 'cert.pem'), join(place.path, 'key.pem')]
    const how =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=muster -addext subjectAltName=IP:127.0.0.1'
    await exec('openssl', [...how.split(' '), '-keyout', key, '-out', cert])
    await using server = await start(freshData(), ['--tls-cert', cert, '--tls-key', key])
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    const token = (await server.cli('token', 'create', 'me', '--role', 'operator')).stdout.trim()
    const options = { ca: await readFile(cert), headers: { authorization: `Bearer ${token}` }, agent: false }
    const status = await new Promise<number>((resolve, reject) => {
      const sent = https.get(`${server.url}/api/v1/status`, options, response => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      sent.once('error', reject)
    })
    expect(status).toBe(200)
    const env = { MUSTER_SERVER: server.url, MUSTER_TOKEN: token }
    const trusted = await muster(['status'], { ...env, NODE_EXTRA_CA_CERTS: cert })
    expect(trusted).toMatchObject({ code: 0, stderr: '' })
    const mistrusted = await muster(['status'], env)
    expect(mistrusted.code).toBe(3)
    expect(mistrusted.stderr).toMatch(/certificate/)
    // Who speaks in clear is not served.
    await expect(server.ask('GET', '/healthz')).rejects.toThrow('socket hang up')
    expect(await server.end('SIGTERM')).toEqual({ code: 0, signal: null })
  })

  it('needs both files, and files that are what they should be', async () => {
    const some = join(place.path, 'rubbish.pem')
    await writeFile(some, 'rubbish')
    const [alone, missing, rubbish] = await Promise.all(
      [
        ['--tls-cert', some],
        ['--tls-cert', some, '--tls-key', '/nowhere/key.pem'],
        ['--tls-cert', some, '--tls-key', some],
      ].map(args => serveOn('127.0.0.1:0', site.dir, args)),
    )
    expect(alone).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--tls-cert and --tls-key go together') as unknown,
    })
    expect(missing?.code).not.toBe(0)
    expect(missing?.stderr).toContain('/nowhere/key.pem')
    expect(rubbish?.code).not.toBe(0)
    expect(rubbish?.stderr).toContain(some)
  })
})

describe('a site that cannot be served', () => {
  it('is refused at the start, with the next step', async () => {
    const empty = join(place.path, 'empty')
    const ungit = join(place.path, 'ungit')
    await mkdir(empty)
    await mkdir(ungit)
    await writeFile(join(ungit, 'site.yaml'), 'site: demo\n')
    const [nothing, folderOnly, files] = await Promise.all(
      ['/nowhere', empty, ungit].map(dir => serveOn('127.0.0.1:0', dir)),
    )
    expect(nothing).toMatchObject({ code: 1, stderr: expect.stringContaining('/nowhere holds no site') as unknown })
    expect(folderOnly).toMatchObject({ code: 1, stderr: expect.stringContaining('holds no site') as unknown })
    expect(files).toMatchObject({ code: 1, stderr: expect.stringContaining('is not in a git repository') as unknown })
  })

  it('because it is invalid does not keep the server from starting with what is in force', async () => {
    const data = freshData()
    await using broken = await makeSite()
    {
      await using server = await startMuster({ site: broken.dir, data })
      expect((await server.cli('site', 'apply', '--yes')).code).toBe(0)
    }
    await broken.write('nodes.yaml', 'n001: [\n')
    await broken.commit('Broken')
    await using server = await startMuster({ site: broken.dir, data })
    expect((await server.root('GET', '/api/v1/nodes/n001')).status).toBe(200)
    const applied = await server.cli('site', 'apply', '--yes')
    expect(applied.code).toBe(1)
    expect(applied.stderr).toMatch(/^nodes\.yaml:\d+:\d+: /)
  })
})

const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('listening', flush=True)
while True:
    print(s.recv(4096).decode().replace('\\n', ' '), flush=True)
`

describe('systemd', () => {
  it('is told when the server is ready and when it stops', async () => {
    const path = join(place.path, 'notify.sock')
    const receiver = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'pipe'] })
    const heard = collect(receiver)
    try {
      await until('the receiver listens', () => heard.stdout.includes('listening\n'))
      await using server = await start(freshData(), [], { NOTIFY_SOCKET: path })
      await until('READY=1', () => heard.stdout.includes('READY=1'))
      expect((await server.root('GET', '/readyz')).status).toBe(200)
      expect(await server.end('SIGTERM')).toEqual({ code: 0, signal: null })
      await until('STOPPING=1', () => heard.stdout.includes('STOPPING=1'))
      const said = heard.stdout.split(/\s+/).filter(word => /^(READY|STOPPING)=/.test(word))
      expect(said).toEqual(['READY=1', 'STOPPING=1'])
      expect(server.output.stdout).not.toContain('systemd was not told')
    } finally {
      receiver.kill('SIGKILL')
    }
  })

  it('that cannot be told is no reason to fail', async () => {
    await using server = await start(freshData(), [], { NOTIFY_SOCKET: join(place.path, 'nobody.sock') })
    expect((await server.cli('status')).code).toBe(0)
    expect(await server.end('SIGTERM')).toEqual({ code: 0, signal: null })
  })

  it('accepts the unit file, and finds it well enough protected', async () => {
    const unit = new URL('../../contrib/systemd/muster.service', import.meta.url)
    const text = await readFile(unit, 'utf8')
    expect(text).toMatch(/^ExecStart=\/usr\/bin\/muster serve --site \/srv\/site$/m)
    for (const line of [
      'Type=notify',
      'NotifyAccess=all',
      'StateDirectory=muster',
      'StateDirectoryMode=0700',
      'Restart=on-failure',
    ])
      expect(text.split('\n')).toContain(line)
    const copy = join(place.path, 'muster.service')
    await writeFile(copy, text.replaceAll('/usr/bin/muster', MUSTER))
    await chmod(copy, 0o644)
    const { stdout } = await exec('systemd-analyze', ['verify', '--man=no', copy])
    expect(stdout.toString('utf8')).toBe('')
    const rating = await exec('systemd-analyze', ['security', '--offline=true', '--threshold=45', '--no-pager', copy])
    expect(rating.stdout.toString('utf8')).toMatch(/Overall exposure level for muster\.service: [0-4]\.\d/)
  })
})
