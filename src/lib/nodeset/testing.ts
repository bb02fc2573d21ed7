/** Random names for the properties in tests: few letters, and digits around the places where their number changes. */
import * as fc from 'fast-check'

const digits = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[0-3]$/) },
  fc.constantFrom('8', '9', '10', '11', '08', '09', '98', '99', '100', '099', '0999', '1000', '00', '000'),
  fc.stringMatching(/^\d{1,15}$/),
)

const name = fc.oneof(
  digits.map(n => `n${n}`),
  fc.tuple(digits, digits).map(([r, n]) => `r${r}n${n}`),
  fc.tuple(digits, digits, digits).map(([a, b, c]) => `${a}-${b}.${c}_`),
  digits.map(n => `n${n}-ib`),
  digits,
  fc.constantFrom('login', 'n', 'N'),
)

export const anyNames = fc.uniqueArray(name, { maxLength: 40 })
