import { connect } from 'node:net'

/**
 * One request over a connection of its own, as a loader or curl makes it: it says nothing of closing, and goes when it has
 * what it wanted. The answer with its head; nothing if there was none.
 */
export function exchange(port: number, number: number, request: string): Promise<string> {
  return new Promise(resolve => {
    // As many clients as there are nodes have more addresses than one, and more ports.
    const localAddress = `127.0.${1 + (number % 200)}.${2 + (number % 250)}`
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    let received = ''
    let wanted = Infinity
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (wanted === Infinity) wanted = wholeLength(received)
      if (received.length < wanted) return
      socket.destroy()
      resolve(received)
    })
    socket.once('error', () => resolve(''))
    socket.once('close', () => resolve(''))
    socket.write(request, 'latin1')
  })
}

function wholeLength(received: string): number {
  const head = received.indexOf('\r\n\r\n')
  if (head < 0) return Infinity
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(received.slice(0, head + 2))?.[1]
  return length === undefined ? Infinity : head + 4 + Number(length)
}
