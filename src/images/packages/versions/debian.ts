/** The order of versions dpkg has, see deb-version(7): [epoch:]upstream[-revision]. */
export function compareDebianVersions(a: string, b: string): number {
  const left = partsOf(a)
  const right = partsOf(b)
  return (
    compareDigits(left.epoch, right.epoch) ||
    comparePart(left.upstream, right.upstream) ||
    comparePart(left.revision, right.revision)
  )
}

function partsOf(version: string): { epoch: string; upstream: string; revision: string } {
  const colon = version.indexOf(':')
  const rest = version.slice(colon + 1)
  const dash = rest.lastIndexOf('-')
  return {
    epoch: colon < 0 ? '' : version.slice(0, colon),
    upstream: dash < 0 ? rest : rest.slice(0, dash),
    revision: dash < 0 ? '' : rest.slice(dash + 1),
  }
}

/** By turns a stretch without digits, letter by letter, and a stretch of digits, as a number. */
function comparePart(a: string, b: string): number {
  const left = stretches(a)
  const right = stretches(b)
  for (let index = 0; index < left.length || index < right.length; index++) {
    const [one = '', other = ''] = [left[index], right[index]]
    const order = index % 2 === 0 ? compareLetters(one, other) : compareDigits(one, other)
    if (order !== 0) return order
  }
  return 0
}

/** '1.2~rc3' → ['', '1', '.', '2', '~rc', '3'] */
const stretches = (part: string): string[] =>
  [...part.matchAll(/(\D*)(\d*)/g)].flatMap(([, letters = '', digits = '']) => [letters, digits])

function compareLetters(a: string, b: string): number {
  for (let at = 0; at < a.length || at < b.length; at++) {
    const order = weightOf(a[at]) - weightOf(b[at])
    if (order !== 0) return order
  }
  return 0
}

/** A tilde comes before the end, the end before letters, letters before everything else. */
function weightOf(character: string | undefined): number {
  if (character === '~') return -1
  if (character === undefined) return 0
  const code = character.charCodeAt(0)
  return /[a-z]/i.test(character) ? code : code + 256
}

/** Of any length: dates and hashes exceed what numbers hold. */
export function compareDigits(a: string, b: string): number {
  const left = a.replace(/^0+/, '')
  const right = b.replace(/^0+/, '')
  return left.length - right.length || (left < right ? -1 : left > right ? 1 : 0)
}
