/**
 * Wild cards: '*' is any text, '?' any one character. matches('n?1*', 'n11-ib') → true.
 * Not a regular expression: those can take exponential time on a pattern such as *a*a*a*b, and patterns come from users.
 */
export const isWild = (text: string): boolean => /[*?]/.test(text)

export function matches(glob: string, name: string): boolean {
  let at = 0
  let place = 0
  // Where to go back to: just after the last '*', which then takes one character more. Earlier ones never need to.
  let retryAt = -1
  let retryPlace = 0
  while (place < name.length) {
    if (glob[at] === '*') {
      retryAt = ++at
      retryPlace = place
    } else if (at < glob.length && (glob[at] === '?' || glob[at] === name[place])) {
      at++
      place++
    } else if (retryAt >= 0) {
      at = retryAt
      place = ++retryPlace
    } else return false
  }
  while (glob[at] === '*') at++
  return at === glob.length
}
