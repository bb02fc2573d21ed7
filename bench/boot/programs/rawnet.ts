import { once } from 'node:events'
import { createServer } from 'node:net'
import { answerWith, cpuSeconds } from '../skills.ts'
const R = Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\ninterval=10\n')
async function start(body: string): Promise<string> {
  const server = createServer({ noDelay: true }, s => {
    s.on('data', () => s.write(R))
    s.on('error', () => {})
  })
  server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as any).port}`
}
const skills = { start, usage: () => ({ cpu: cpuSeconds() }) }
answerWith(skills as any)
