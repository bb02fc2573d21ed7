import { randomUUID } from 'node:crypto'
import { link, mkdir, rename, rm, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { exists, makeDirectory } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { hashFile } from '../store/disk.ts'
import { localDirectories } from './apt.ts'
import { withTool } from './sandbox.ts'

/** Something to download: known by its digest, to be had from any of these addresses. */
export interface Wanted {
  readonly name: string
  readonly sha256: string
  readonly urls: readonly string[]
}

/** Downloaded packages by digest: DATA/images/packages/ab/<sha256>. Never fetched twice, never used unless it is what was locked. */
export class PackageCache {
  readonly #dir: string

  constructor(dir: string) {
    this.#dir = dir
  }

  pathOf = (sha256: string): string => join(this.#dir, sha256.slice(0, 2), sha256)

  has = (sha256: string): Promise<boolean> => exists(this.pathOf(sha256))

  /** Brings what is missing, from the first address that has it, then from the next. */
  async fetch(wanted: readonly Wanted[], onProgress: (line: string) => void, signal?: AbortSignal): Promise<void> {
    const distinct = [...new Map(wanted.map(item => [item.sha256, item])).values()]
    const isHere = await Promise.all(distinct.map(item => this.has(item.sha256)))
    let missing = distinct.filter((_, at) => isHere[at] !== true)
    const tries = Math.max(0, ...missing.map(item => item.urls.length))
    const failures: string[] = []
    for (let at = 0; at < tries && missing.length > 0; at++) {
      onProgress(`fetching ${missing.length} packages`)
      failures.length = 0
      missing = await this.#fetchFrom(missing, at, failures, onProgress, signal)
    }
    if (missing.length === 0) return
    const names = missing.map(item => item.name)
    const gone = failures.length > 0 && failures.every(failure => / \((404|410|37)\)$/.test(failure))
    throw new MusterError(
      gone ? 'PACKAGE_GONE' : 'MIRROR_UNREACHABLE',
      gone
        ? `no longer to be had: ${names.slice(0, 5).join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`
        : `cannot fetch ${names[0]}${names.length > 1 ? ` and ${names.length - 1} more` : ''}`,
      { details: failures.slice(0, 5) },
    )
  }

  async #fetchFrom(
    wanted: readonly Wanted[],
    at: number,
    failures: string[],
    onProgress: (line: string) => void,
    signal?: AbortSignal,
  ): Promise<Wanted[]> {
    const temporary = join(this.#dir, `new-${process.pid}-${randomUUID()}`)
    await makeDirectory(temporary, 0o700)
    try {
      const fetched = wanted.filter(item => item.urls[at] !== undefined)
      const config = fetched.map(
        item => `url = ${quoted(item.urls[at] ?? '')}\noutput = ${quoted(join(temporary, item.sha256))}\n`,
      )
      const { stdout } = await withTool(undefined, [...CURL, '--write-out', REPORT, '--config', '-'], {
        input: config.join(''),
        network: true,
        readable: await localDirectories(fetched.map(item => dirname(item.urls[at] ?? ''))),
        writable: { [temporary]: temporary },
        allow: Array.from({ length: 255 }, (_, code) => code + 1),
        ...(signal && { signal }),
      })
      const report = new Map(
        stdout
          .toString('utf8')
          .split('\n')
          .map(line => [line.split('\t')[0] ?? '', line.split('\t')]),
      )
      const missing: Wanted[] = wanted.filter(item => item.urls[at] === undefined)
      for (const item of fetched) {
        const file = join(temporary, item.sha256)
        const [, http = '', code = '', message = ''] = report.get(file) ?? []
        if (code === '0' && (await this.#adopt(file, item, failures))) onProgress(`fetched ${item.name}`)
        else {
          missing.push(item)
          if (code !== '0')
            failures.push(`${item.urls[at]}: ${message} (${http === '000' || http === '' ? code : http})`)
        }
      }
      return missing
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
  }

  async #adopt(file: string, item: Wanted, failures: string[]): Promise<boolean> {
    const { sha256: found } = await hashFile(file)
    if (found !== item.sha256) {
      failures.push(`${item.name}: has digest ${found}, expected ${item.sha256}`)
      return false
    }
    const target = this.pathOf(item.sha256)
    await makeDirectory(join(this.#dir, item.sha256.slice(0, 2)))
    await rename(file, target)
    return true
  }

  /** A directory of these packages under their own names, for a package manager; no bytes are copied. */
  async linkInto(dir: string, packages: readonly { readonly sha256: string; readonly file: string }[]): Promise<void> {
    await mkdir(dir, { recursive: true })
    const now = new Date()
    for (const { sha256, file } of packages) {
      await link(this.pathOf(sha256), join(dir, file))
      // The time of last use, for gc.
      await utimes(this.pathOf(sha256), now, now)
    }
  }
}

const CURL = [
  ...'curl --silent --globoff --fail --location --parallel --parallel-max 8 --retry 2 --connect-timeout 20'.split(' '),
  ...'--speed-time 60 --speed-limit 1 --proto =http,https,ftp,file --proto-redir =http,https'.split(' '),
]
const REPORT = '%{filename_effective}\\t%{http_code}\\t%{exitcode}\\t%{errormsg}\\n'

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`
