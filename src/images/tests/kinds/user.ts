import { Unknown } from '../found.ts'
import { type Observe, asks, gather, targetOf, unknown } from './look.ts'
import { readGroups, readUsers } from './users.ts'

export const observeUser: Observe = async (subject, check) => {
  const users = await readUsers(subject)
  if (users instanceof Unknown) return unknown(check, users)
  const user = users.find(({ name }) => name === targetOf(check))
  if (user === undefined) return { exists: false }
  const groups = asks(check, 'groups') ? await readGroups(subject) : []
  const { uid, gid, home, shell } = user
  return gather(check, {
    exists: true,
    uid,
    gid,
    home,
    shell,
    groups:
      groups instanceof Unknown
        ? groups
        : groups.filter(group => group.gid === gid || group.members.includes(user.name)).map(({ name }) => name),
  })
}
