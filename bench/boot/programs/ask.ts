import { exchange } from '../exchange.ts'
import { answerWith } from '../skills.ts'
import { benchNode } from '../world.ts'

export interface AskLoad {
  readonly url: string
  readonly nodes: number
  /** How many nodes ask at the same time. */
  readonly atOnce: number
  readonly requests: number
}

export interface AskResult {
  readonly seconds: number
  readonly failed: number
  /** Milliseconds of a request, from before the connection until the last byte. */
  readonly p99: number
}

/** One node after another asks for its boot script, each over a connection of its own, so many at the same time. */
async function ask({ url, nodes, atOnce, requests }: AskLoad): Promise<AskResult> {
  const port = Number(new URL(url).port)
  const times: number[] = []
  let [begun, failed] = [0, 0]
  const began = performance.now()
  const one = async (): Promise<void> => {
    while (begun < requests) {
      const number = begun++
      const { mac } = benchNode((number % nodes) + 1)
      const path = `/boot/script?mac=${mac.replaceAll(':', '-')}&uuid=4c4c4544-0042-3510-8052-b4c04f4a4e32&platform=efi&arch=x86_64&serial=S${number}&product=simulated`
      const start = performance.now()
      const answer = await exchange(
        port,
        number,
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: keep-alive\r\nUser-Agent: iPXE/1.21.1+ (g4e456)\r\n\r\n`,
      )
      if (!answer.startsWith('HTTP/1.1 200 ') || !answer.includes('#!ipxe')) failed++
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  times.sort((a, b) => a - b)
  return {
    seconds: (performance.now() - began) / 1000,
    failed,
    p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN,
  }
}

const skills = { ask }
export type AskSkills = typeof skills
answerWith(skills)
