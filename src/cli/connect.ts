import { dirname, join, resolve } from 'node:path'
import { ApiClient } from '../api/client.ts'
import { exists } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import type { GlobalOptions, Io } from './io.ts'

const DEFAULT_SOCKET = '/var/lib/muster/muster.sock'

export function connect(io: Io, options: GlobalOptions): ApiClient {
  const server = options.server ?? io.env['MUSTER_SERVER'] ?? DEFAULT_SOCKET
  if (/^[\w.-]+:\d+$/.test(server)) {
    throw new MusterError('USAGE', `${server} is not a server address`, {
      hint: `write http://${server}, or the path of a socket`,
    })
  }
  return new ApiClient({ server, token: io.env['MUSTER_TOKEN'] })
}

/** The site that was named, or the one the current directory is in. */
export async function siteDir(io: Io, options: GlobalOptions, given?: string): Promise<string> {
  const found = await findSiteDir(io, options, given)
  if (found === undefined)
    throw new MusterError('SITE_NOT_FOUND', `${io.cwd} is not in a site (no site.yaml here or above)`)
  return found
}

export async function findSiteDir(io: Io, options: GlobalOptions, given?: string): Promise<string | undefined> {
  const named = given ?? options.site ?? io.env['MUSTER_SITE']
  if (named !== undefined) return resolve(io.cwd, named)
  for (let dir = io.cwd; ; dir = dirname(dir)) {
    if (await exists(join(dir, 'site.yaml'))) return dir
    if (dir === dirname(dir)) return undefined
  }
}
