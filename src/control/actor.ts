import { z } from 'zod'
import type { Author } from '../site/git.ts'

export const ROLES = ['viewer', 'operator', 'admin'] as const
export const Role = z.enum(ROLES)
export type Role = z.infer<typeof Role>

/** Who asks for something, and from where: what the audit log shows. */
export interface Actor {
  readonly name: string
  /** The token it showed: names may be given twice. */
  readonly token?: string
  readonly role: Role
  /** 'unix socket' or an address. */
  readonly from: string
}

export const mayAct = (actor: Actor, role: Role): boolean => ROLES.indexOf(actor.role) >= ROLES.indexOf(role)

export const authorOf = (actor: Actor): Author => ({ name: actor.name, email: `${actor.name}@muster` })
