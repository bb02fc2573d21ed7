import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startProgram } from '../../src/lib/program.ts'
import { HERE, type Within } from './pinned.ts'

export interface Nginx extends AsyncDisposable {
  readonly url: string
  /** Of the worker, which does it all. */
  readonly pid: number
}

/** nginx as one would set it up for this: one worker on one core, sendfile, nothing logged. */
export async function startNginx(dir: string, core: number, within: Within = HERE): Promise<Nginx> {
  const port = await freePort()
  const file = join(dir, 'nginx.conf')
  await writeFile(file, configuration(dir, port))
  // Its master ends with us, however we end, and its worker with it.
  const args = ['--pdeathsig=TERM', 'taskset', '--cpu-list', `${core}`, 'nginx', '-e', `${dir}/nginx.log`, '-c', file]
  const program = await startProgram(...within('setpriv', args), { detached: true })
  const worker = await workerOf(program.pid)
  return { url: `http://127.0.0.1:${port}`, pid: worker, [Symbol.asyncDispose]: () => program.stop() }
}

const configuration = (dir: string, port: number): string => `daemon off;
user root;
worker_processes 1;
pid ${dir}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    root ${dir};
  }
}
`

/** nginx knows no port 0. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function workerOf(master: number): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const children = await readFile(`/proc/${master}/task/${master}/children`, 'utf8')
    const worker = Number.parseInt(children, 10)
    if (worker > 0) return worker
    await pause(50)
  }
  throw new Error('nginx did not start')
}
