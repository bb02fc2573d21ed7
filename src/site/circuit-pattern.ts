/**
 * Patterns between what a switch says of a port and what the site calls it. They are read both ways:
 *
 *     matchPattern('Ethernet{{ port }}:{{ vlan }}', 'Ethernet7:100')     → { port: '7', vlan: '100' }
 *     fillPattern('Gi{{ module }}/0/{{ port }}', { module: '1', port: '7' }) → 'Gi1/0/7'
 *
 * Not regular expressions: what is matched comes from the network, and some expressions take for ever.
 */
export type CircuitParts = Readonly<Partial<Record<Word, string>>>

/** Forms of circuit ids that are built in. */
export const CIRCUIT_FORMS = ['arista', 'cisco', 'dell', 'hp', 'juniper', 'linux', 'text'] as const
export type CircuitForm = (typeof CIRCUIT_FORMS)[number]

export const isCircuitForm = (form: string): form is CircuitForm => (CIRCUIT_FORMS as readonly string[]).includes(form)

const MATCHES = { port: '.+?', vlan: '\\d+', module: '\\d+', any: '.*?' } as const
type Word = keyof typeof MATCHES
const isWord = (word: string): word is Word => Object.hasOwn(MATCHES, word)

const PLACEHOLDER = /\{\{\s*(\w+)\s*\}\}/g
/** Few, so that no text takes long to match. */
const MOST = 4

const wordsOf = (pattern: string): string[] => [...pattern.matchAll(PLACEHOLDER)].map(([, word = '']) => word)

/** What is wrong with a pattern that circuit ids are held against. */
export function circuitProblem(pattern: string): string | undefined {
  if (isCircuitForm(pattern)) return undefined
  const words = wordsOf(pattern)
  const unknown = words.find(word => !isWord(word))
  if (unknown !== undefined)
    return `{{ ${unknown} }} means nothing here: there are {{ port }}, {{ vlan }}, {{ module }} and {{ any }}`
  if (!words.includes('port')) return `is neither one of ${CIRCUIT_FORMS.join(', ')} nor a pattern with {{ port }}`
  if (words.length > MOST) return `has more than ${MOST} {{ … }}`
  const named = words.filter(word => word !== 'any')
  return new Set(named).size < named.length ? 'has the same {{ … }} twice' : undefined
}

/** What is wrong with a pattern that names of ports are made from. */
export function portProblem(pattern: string): string | undefined {
  const words = wordsOf(pattern)
  const unknown = words.find(word => !isWord(word) || word === 'any')
  if (unknown !== undefined)
    return `{{ ${unknown} }} means nothing here: there are {{ port }}, {{ vlan }} and {{ module }}`
  return words.includes('port') ? undefined : 'has no {{ port }}: all ports would have one name'
}

/** The parts of a text that a sound pattern finds in it. */
export function matchPattern(pattern: string, text: string): CircuitParts | undefined {
  // Every second piece is the word of a placeholder.
  const source = pattern.split(PLACEHOLDER).map((piece, index) => {
    if (index % 2 === 0) return piece.replaceAll(/[^A-Za-z0-9 ]/g, String.raw`\$&`)
    if (!isWord(piece) || piece === 'any') return `(?:${MATCHES.any})`
    return `(?<${piece}>${MATCHES[piece]})`
  })
  return new RegExp(`^${source.join('')}$`).exec(text)?.groups
}

/** Undefined where a part is missing. */
export function fillPattern(pattern: string, parts: CircuitParts): string | undefined {
  const isKnown = (word: string): boolean => isWord(word) && parts[word] !== undefined
  return wordsOf(pattern).every(isKnown)
    ? pattern.replaceAll(PLACEHOLDER, (_, word: Word) => parts[word] ?? '')
    : undefined
}
