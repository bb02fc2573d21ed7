import type { Io } from '../io.ts'

/** Parts of a log that the web pages of CI systems fold; plain lines where there is none. */
export async function section<Result>(io: Io, title: string, work: () => Promise<Result>): Promise<Result> {
  const [open, close] = marks(io.env, title)
  io.stderr.write(`${open}\n`)
  try {
    return await work()
  } finally {
    if (close !== '') io.stderr.write(`${close}\n`)
  }
}

function marks(env: Io['env'], title: string): [open: string, close: string] {
  if (env['GITHUB_ACTIONS'] === 'true') return [`::group::${title}`, '::endgroup::']
  if (env['GITLAB_CI'] !== 'true') return [`== ${title}`, '']
  const name = title.replaceAll(/[^\w.-]+/g, '_')
  const mark = (which: string): string =>
    `\u001B[0Ksection_${which}:${Math.floor(Date.now() / 1000)}:${name}\r\u001B[0K`
  return [`${mark('start')}${title}`, mark('end')]
}
