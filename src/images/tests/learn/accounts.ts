import type { Facts } from './facts.ts'
import { type LearntCheck, type LearntGroup, type Odd, isPlain, sorted } from './learnt.ts'

/** Where numbers of people begin (login.defs); from the upper one on there are only nobody and containers. */
const FIRST = 1000
const BEYOND = 60_000
const isPerson = (id: number): boolean => id >= FIRST && id <= BEYOND

const SHELL = /(^|\/)((ba|da|z|mk|k|pdk|tc|c|fi|a|rba)?sh)$/

/** People, and accounts one can log in to. Of those a package made the numbers are its own affair. */
export function learnAccounts(facts: Facts, odd: Odd): LearntGroup[] {
  const groups = facts.group.flatMap(([name = '', gid = '', members = '']) =>
    /^\d{1,10}$/.test(gid) ? [{ name, gid: Number(gid), members: members.split(',') }] : [],
  )
  const people = new Set<string>()
  const users = facts.user.flatMap(([name = '', uid = '', gid = '', home = '', shell = '']): LearntCheck[] => {
    if (![uid, gid].every(id => /^\d{1,10}$/.test(id))) return []
    const person = isPerson(Number(uid))
    if (name === 'root' || !(person || SHELL.test(shell))) return []
    const details = Object.entries({ home, shell }).filter(([, value]) => value !== '')
    if (!odd.allows('user', name, ...details.map(([, value]) => value))) return []
    if (person) people.add(name)
    const own = groups.filter(group => group.gid === Number(gid) || group.members.includes(name)).map(one => one.name)
    const attributes = {
      exists: true,
      ...(person && { uid: Number(uid), gid: Number(gid) }),
      ...Object.fromEntries(details),
      ...(own.length > 0 && own.every(isPlain) && { groups: { 'consist-of': own.toSorted() } }),
    }
    return [{ name, attributes }]
  })
  const others = groups.filter(({ name, gid }) => isPerson(gid) && !people.has(name) && odd.allows('group', name))
  return [
    {
      topic: 'user',
      kind: 'user',
      comment: 'Users that are people (from uid 1000 on), or that one can log in as.',
      checks: sorted(users),
    },
    {
      topic: 'group',
      kind: 'group',
      comment: 'Groups from gid 1000 on that are not the own ones of these users.',
      checks: sorted(others.map(({ name, gid }) => ({ name, attributes: { exists: true, gid } }))),
    },
  ]
}
