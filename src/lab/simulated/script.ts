/** What a loader would make of a script of ours: what to fetch, and what the kernel is told. */
export interface LoadedScript {
  readonly kernel: string
  readonly initrds: readonly string[]
  readonly args: ReadonlyMap<string, string>
}

/** Undefined for a script that boots nothing of ours: a disk, a message. */
export function readScript(text: string): LoadedScript | undefined {
  const lines = text.split('\n')
  const kernel = lines
    .map(line => /^kernel --name kernel \$\{base\}(\S+) (.*) \|\| goto failed$/.exec(line))
    .find(Boolean)
  if (kernel?.[1] === undefined) return undefined
  const initrds = lines.flatMap(line => /^initrd --name \S+ \$\{base\}(\S+) \|\| goto failed$/.exec(line)?.[1] ?? [])
  const words = (kernel[2] ?? '').split(' ').map(word => {
    const [key = '', ...rest] = word.split('=')
    return [key, rest.join('=')] as const
  })
  return { kernel: kernel[1], initrds, args: new Map(words) }
}
