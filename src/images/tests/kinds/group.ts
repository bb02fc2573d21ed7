import { Unknown } from '../found.ts'
import { type Observe, gather, targetOf, unknown } from './look.ts'
import { readGroups } from './users.ts'

export const observeGroup: Observe = async (subject, check) => {
  const groups = await readGroups(subject)
  if (groups instanceof Unknown) return unknown(check, groups)
  const group = groups.find(({ name }) => name === targetOf(check))
  return group === undefined ? { exists: false } : gather(check, { exists: true, gid: group.gid })
}
