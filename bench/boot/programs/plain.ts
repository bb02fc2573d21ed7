import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerWith, cpuSeconds } from '../skills.ts'

/** Node's own HTTP server that says the same to everybody: what there is to lose. */
async function start(body: string): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
  server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const skills = { start, usage: () => ({ cpu: cpuSeconds() }) }
export type PlainSkills = typeof skills
answerWith(skills)
