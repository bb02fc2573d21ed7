import type { Skills } from './pinned.ts'

/** The other end of `Pinned`: answers what it is asked until nobody asks any more. */
export function answerWith(skills: Skills, close: () => Promise<void> = async () => {}): void {
  process.on('message', (message: { id: number; name: string; value: never }) => {
    void answer(skills, message).then(reply => process.send?.({ id: message.id, ...reply }))
  })
  process.once('disconnect', () => void close().finally(() => process.exit()))
}

async function answer(skills: Skills, { name, value }: { name: string; value: never }): Promise<object> {
  try {
    return { value: await skills[name]?.(value) }
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

/** Seconds of processor time of this process so far, all threads. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
