import type { CheckKind } from '../syntax.ts'
import { observeAddr } from './addr.ts'
import { observeCommand } from './command.ts'
import { observeDns } from './dns.ts'
import { observeFile } from './file.ts'
import { observeGroup } from './group.ts'
import { observeHttp } from './http.ts'
import { observeInterface } from './interface.ts'
import { observeKernelParam } from './kernel-param.ts'
import type { Observe } from './look.ts'
import { observeMatching } from './matching.ts'
import { observeMount } from './mount.ts'
import { observePackage } from './package.ts'
import { observePort } from './port.ts'
import { observeProcess } from './process.ts'
import { observeService } from './service.ts'
import { observeUser } from './user.ts'

const OBSERVERS: Readonly<Record<CheckKind, Observe>> = {
  addr: observeAddr,
  command: observeCommand,
  dns: observeDns,
  file: observeFile,
  group: observeGroup,
  http: observeHttp,
  interface: observeInterface,
  'kernel-param': observeKernelParam,
  matching: observeMatching,
  mount: observeMount,
  package: observePackage,
  port: observePort,
  process: observeProcess,
  service: observeService,
  user: observeUser,
}

/** What there is, of the attributes the check asks about. */
export const observe: Observe = (subject, check) => OBSERVERS[check.kind](subject, check)
