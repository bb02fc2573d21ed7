import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { exec } from '../../src/lib/exec.ts'

/**
 * Types the tutorial in as it stands, block by block, and compares what appears with what the page shows. Commit ids and
 * times are the only things that may differ.
 */
const root = new URL('../..', import.meta.url).pathname
const page = await readFile(join(root, 'docs/tutorial.md'), 'utf8')

interface Block {
  readonly info: string
  readonly body: string
}

const blocks: Block[] = [...page.matchAll(/^```(\S[^\n]*)\n(.*?)^```$/gms)].map(([, info = '', body = '']) => ({
  info,
  body,
}))

let dir: string
let cwd: string
const environment: Record<string, string> = {
  PATH: `${join(root, 'bin')}:${process.env['PATH']}`,
  GIT_AUTHOR_NAME: 'you',
  GIT_AUTHOR_EMAIL: 'you@example.org',
  GIT_COMMITTER_NAME: 'you',
  GIT_COMMITTER_EMAIL: 'you@example.org',
}
const servers: { stop: AbortController; ended: Promise<unknown> }[] = []

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-tutorial-'))
  cwd = dir
})
afterAll(async () => {
  for (const { stop } of servers) stop.abort()
  await Promise.all(servers.map(server => server.ended))
  await rm(dir, { recursive: true })
})

test('the tutorial shows what appears', async () => {
  for (const { info, body } of blocks) {
    const [kind = '', setting = ''] = info.split(' ')
    const file = setting.split('=')[1] ?? ''
    if (setting.startsWith('title=')) await writeFile(join(cwd, file), body)
    else if (setting.startsWith('append=')) await appendFile(join(cwd, file), body)
    else if (setting === 'background') await startServer(body)
    else if (kind === 'console') for (const step of stepsOf(body)) await type(step)
  }
  expect(blocks.length).toBeGreaterThan(10)
})

interface Step {
  readonly command: string
  readonly shown: string
}

/** `$ command` and the lines that appear below it. */
function stepsOf(body: string): Step[] {
  return body
    .split(/^\$ /m)
    .slice(1)
    .map(part => {
      const [command = '', ...shown] = part.split('\n')
      return { command, shown: shown.join('\n') }
    })
}

/** A directory or a variable that a command leaves behind is there for the next, as in a terminal. */
async function type({ command, shown }: Step): Promise<void> {
  const script = `cd '${cwd}'\n{ ${command}\n} 2>&1\nstatus=$?\nprintf '\\0%s\\0%s' "$PWD" "\${MUSTER_SERVER:-}"\nexit $status`
  const { stdout } = await exec('bash', ['-c', script], { env: environment, allow: [1] })
  const [output = '', where = '', server = ''] = stdout.toString('utf8').split('\0')
  cwd = where
  if (server !== '') environment['MUSTER_SERVER'] = server
  expect(normalise(output), `$ ${command}`).toBe(normalise(shown))
}

async function startServer(body: string): Promise<void> {
  const [{ command } = { command: '' }] = stepsOf(body)
  const stop = new AbortController()
  const args = ['-c', `exec ${command} --listen 127.0.0.1:0`]
  const ended = exec('bash', args, { cwd: dir, env: environment, signal: stop.signal, timeout: 300_000 }).catch(
    (error: unknown) => error,
  )
  servers.push({ stop, ended })
  const answers = 'until muster status >/dev/null 2>&1; do sleep 0.1; done'
  await exec('bash', ['-c', answers], { env: { ...environment, MUSTER_SERVER: join(dir, 'data/muster.sock') } })
}

/** Columns shift with the length of what stands in them: runs of spaces count as one. */
function normalise(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/\b[0-9a-f]{10}\b/g, 'COMMIT')
    .replaceAll(/\b\d+[smh] ago/g, 'AGO')
    .replaceAll(/ {2,}/g, '  ')
    .trimEnd()
}
