import { Unknown, linesOf } from '../found.ts'
import type { Subject } from '../subject.ts'
import { readText } from './look.ts'

/** Users and groups as /etc/passwd and /etc/group have them: those of the image, not those of a directory service. */
interface User {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
  readonly shell: string
}

export interface Group {
  readonly name: string
  readonly gid: number
  readonly members: readonly string[]
}

export const readUsers = (subject: Subject): Promise<readonly User[] | Unknown> =>
  readTable(subject, '/etc/passwd', ([name = '', , uid, gid, , home = '', shell = '']) => ({
    name,
    uid: Number(uid),
    gid: Number(gid),
    home,
    shell,
  }))

export const readGroups = (subject: Subject): Promise<readonly Group[] | Unknown> =>
  readTable(subject, '/etc/group', ([name = '', , gid, members = '']) => ({
    name,
    gid: Number(gid),
    members: members.split(',').filter(member => member !== ''),
  }))

async function readTable<T>(
  subject: Subject,
  path: string,
  rowOf: (fields: readonly string[]) => T,
): Promise<readonly T[] | Unknown> {
  const text = await readText(subject, path)
  if (text === undefined) return new Unknown(`there is no ${path}`)
  if (text instanceof Unknown) return text
  return linesOf(text)
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => rowOf(line.split(':')))
}
