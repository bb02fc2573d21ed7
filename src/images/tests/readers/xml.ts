import { MusterError } from '../../../lib/errors.ts'

/** As much of XML as results of tests need: no document type, no entities but the five. Prefixes are left out of names. */
export type XmlEvent =
  | { readonly kind: 'open'; readonly name: string; readonly attributes: Readonly<Record<string, string>> }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'close'; readonly name: string }

const DEEPEST = 256
const NAME = '[A-Za-z_][\\w.-]*(?::[A-Za-z_][\\w.-]*)?'
const ATTRIBUTE = `\\s+(${NAME})\\s*=\\s*(?:"([^"<]*)"|'([^'<]*)')`
const OPEN = new RegExp(`<(${NAME})((?:${ATTRIBUTE.replaceAll(/\((?!\?)/g, '(?:')})*)\\s*(/?)>`, 'y')
const CLOSE = new RegExp(`</(${NAME})\\s*>`, 'y')
const ATTRIBUTES = new RegExp(ATTRIBUTE, 'g')

/** What stands between these says nothing to us. */
const ASIDE = [
  ['<!--', '-->'],
  ['<?', '?>'],
] as const

const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }),
)

/** Goes through a document from its beginning; throws where it is not well-formed, with the line. */
export function* readXml(text: string): Generator<XmlEvent> {
  const open: string[] = []
  let at = text.startsWith('\uFEFF') ? 1 : 0
  let hasRoot = false
  const fail = (what: string): never => {
    const line = text.slice(0, at).split('\n').length
    throw new MusterError('EXEC_FAILED', `line ${line}: ${what}`, { hint: '' })
  }
  const decode = (part: string): string => decodeEntities(part) ?? fail('has an entity that XML does not have itself')
  while (at < text.length) {
    const aside = ASIDE.find(([begin]) => text.startsWith(begin, at))
    if (aside !== undefined) {
      const [begin, close] = aside
      at = endOf(text, close, at + begin.length) ?? fail(`${begin} has no ${close}`)
    } else if (text.startsWith('<![CDATA[', at) && open.length > 0) {
      const end = endOf(text, ']]>', at + 9) ?? fail('CDATA has no end')
      yield { kind: 'text', text: text.slice(at + 9, end - 3) }
      at = end
    } else if (text.startsWith('<!', at)) fail('a document type is not read')
    else if (text.startsWith('</', at)) {
      const [whole, name = ''] = matchAt(CLOSE, text, at) ?? fail('is not XML')
      if (open.pop() !== name) fail(`</${name}> closes what is not open`)
      yield { kind: 'close', name: localName(name) }
      at += whole.length
    } else if (text.startsWith('<', at)) {
      const [whole, name = '', attributes = '', isEmpty] = matchAt(OPEN, text, at) ?? fail('is not XML')
      if (open.length === 0 && hasRoot) fail('has more than one root')
      if (open.length === DEEPEST) fail('is nested too deeply')
      hasRoot = true
      yield { kind: 'open', name: localName(name), attributes: attributesIn(attributes, decode, fail) }
      if (isEmpty === '/') yield { kind: 'close', name: localName(name) }
      else open.push(name)
      at += whole.length
    } else {
      const next = text.indexOf('<', at)
      const end = next < 0 ? text.length : next
      const part = text.slice(at, end)
      if (open.length > 0) yield { kind: 'text', text: decode(part) }
      else if (part.trim() !== '') fail('has text outside of its root')
      at = end
    }
  }
  if (open.length > 0) fail(`<${open.at(-1)}> is not closed`)
  if (!hasRoot) fail('is empty')
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

function endOf(text: string, mark: string, from: number): number | undefined {
  const at = text.indexOf(mark, from)
  return at < 0 ? undefined : at + mark.length
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1)

function attributesIn(
  text: string,
  decode: (part: string) => string,
  fail: (what: string) => never,
): Readonly<Record<string, string>> {
  const found = new Map<string, string>()
  for (const [, name = '', double, single] of text.matchAll(ATTRIBUTES)) {
    if (found.has(name)) fail(`attribute ${name} is there twice`)
    found.set(name, decode(double ?? single ?? ''))
  }
  return Object.fromEntries(found)
}

/** Nothing where one of them is unknown. */
function decodeEntities(text: string): string | undefined {
  if (!text.includes('&')) return text
  let isKnown = true
  const decoded = text.replaceAll(/&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(\w+));|&/g, (_, hex, decimal, name) => {
    const code = hex === undefined ? Number(decimal) : Number.parseInt(String(hex), 16)
    const character = name === undefined ? characterOf(code) : ENTITIES.get(String(name))
    isKnown &&= character !== undefined
    return character ?? ''
  })
  return isKnown ? decoded : undefined
}

const characterOf = (code: number): string | undefined =>
  code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : undefined
