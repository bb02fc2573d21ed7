import type { Check } from '../check.ts'
import { Output, Unknown, linesOf } from '../found.ts'
import { type Observe, gather, shell, targetOf, textSetting, timeoutOf, trouble, unknown } from './look.ts'

const FIVE_SECONDS = 5000
/** For curl to start. */
const GRACE = 5000

/** Asked by curl inside, for what the image can reach is what matters. */
export const observeHttp: Observe = async (subject, check) => {
  const timeout = timeoutOf(check, FIVE_SECONDS)
  const [argv, config] = curlOf(check, timeout)
  const result = await shell(subject, 'curl "$@"', argv, { timeout: timeout + GRACE, input: config })
  const answer = result.exitCode === 0 ? splitAnswer(result.stdout) : trouble(result, 'curl')
  if (answer instanceof Unknown) return unknown(check, answer)
  return gather(check, answer)
}

/** What is secret, or might be, goes through standard input: arguments are for everybody to see. */
function curlOf(check: Check, timeout: number): [argv: string[], config: string] {
  const { settings } = check
  const text = (name: string): string | undefined => textSetting(check, name)
  const [user, password] = [text('username'), text('password')]
  const headers = Array.isArray(settings['request-headers']) ? settings['request-headers'].map(String) : []
  const config = [
    ['url', targetOf(check)],
    ['request', text('method')],
    ['data-raw', text('request-body')],
    ['user', user === undefined && password === undefined ? undefined : `${user ?? ''}:${password ?? ''}`],
    ['cacert', text('ca-file')],
    ['cert', text('cert-file')],
    ['key', text('key-file')],
    ['proxy', text('proxy')],
    ...headers.map(header => ['header', header] as const),
  ] as const
  const lines = config.flatMap(([name, value]) => (value === undefined ? [] : [`${name} = ${quoted(value)}`]))
  const flags = [
    ...(settings['no-follow-redirects'] === true ? [] : ['--location']),
    ...(settings['allow-insecure'] === true ? ['--insecure'] : []),
  ]
  const argv = ['--silent', '--show-error', '--include', '--globoff', '--max-time', String(timeout / 1000), ...flags]
  return [['--disable', ...argv, '--config', '-'], `${lines.join('\n')}\n`]
}

/** As curl's configuration wants it. */
function quoted(value: string): string {
  const escaped = value.replaceAll(/[\\"]/g, String.raw`\$&`).replaceAll('\n', String.raw`\n`)
  return `"${escaped.replaceAll('\r', String.raw`\r`).replaceAll('\t', String.raw`\t`)}"`
}

interface Answer extends Record<string, unknown> {
  readonly status: number
  readonly headers: Output
  readonly body: Output
}

/** Of an answer that led elsewhere only the headers are printed; the last of them come with the body. */
function splitAnswer(bytes: Buffer): Answer | Unknown {
  let rest = bytes
  let head: string | undefined
  while (rest.subarray(0, 5).toString('latin1') === 'HTTP/') {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) break
    head = rest.subarray(0, end).toString('utf8')
    rest = rest.subarray(end + 4)
  }
  const status = /^HTTP\/\S+ (\d{3})/.exec(head ?? '')?.[1]
  if (head === undefined || status === undefined) return new Unknown('the answer is not HTTP')
  const [, ...headers] = linesOf(head).map(line => line.replace(/^[^:]+/, canonical))
  return { status: Number(status), headers: new Output(headers.join('\n')), body: new Output(rest) }
}

/** Content-Type, as goss has it: a server may write it in any way. */
const canonical = (name: string): string => name.toLowerCase().replaceAll(/(^|-)[a-z]/g, start => start.toUpperCase())
