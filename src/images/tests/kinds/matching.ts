import { Output } from '../found.ts'
import { type Observe, gather } from './look.ts'

/** Looks at nothing: the file itself says what is compared, and whether a list on it is one of patterns (as-reader). */
export const observeMatching: Observe = (_, { settings, ...check }) => {
  const { content } = settings
  const output = settings['as-reader'] === true && typeof content === 'string'
  return gather({ ...check, settings }, { matches: output ? new Output(content) : content })
}
