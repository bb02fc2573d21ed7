import { humanSize } from '../../lib/size.ts'
import { shortDigest } from '../images.ts'

/** What became of one image. */
export interface CiImage {
  readonly name: string
  readonly digest?: string
  readonly isUnchanged?: boolean
  readonly tests?: { readonly passed: number; readonly failed: number; readonly places: readonly string[] }
  readonly packages?: PackageChanges
  readonly size?: { readonly before?: number; readonly after: number }
  readonly signedBy?: string
  /** Bytes that were sent. */
  readonly sent?: number
  readonly channel?: string
  /** Where it stopped, and why. */
  readonly failed?: { readonly step: string; readonly message: string; readonly details: readonly string[] }
}

export interface PackageChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
}

/** For a merge request: tests, package changes, size change. */
export function markdown(images: readonly CiImage[]): string {
  const rows = images.map(image => `| ${[image.name, ...cells(image)].map(escape).join(' | ')} |`)
  return [
    '| image | digest | tests | packages | size | channel |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
    ...images.flatMap(details),
  ].join('\n')
}

function cells({ digest, isUnchanged, tests, packages, size, channel, failed }: CiImage): string[] {
  return [
    digest === undefined ? '-' : `${shortDigest(digest)}${isUnchanged === true ? ' (unchanged)' : ''}`,
    tests === undefined ? 'none' : tests.failed > 0 ? `${tests.failed} failed` : `${tests.passed} passed`,
    packages === undefined ? '-' : `+${packages.added.length} −${packages.removed.length} ±${packages.changed.length}`,
    size === undefined ? '-' : sizeText(size),
    failed === undefined ? (channel ?? '-') : `failed: ${failed.step}`,
  ]
}

function sizeText({ before, after }: NonNullable<CiImage['size']>): string {
  if (before === undefined) return humanSize(after)
  const delta = after - before
  return `${humanSize(after)} (${delta < 0 ? '−' : '+'}${humanSize(Math.abs(delta))})`
}

function details({ name, packages, failed }: CiImage): string[] {
  const changes =
    packages === undefined
      ? []
      : [
          ...packages.added.map(one => `+ ${one}`),
          ...packages.removed.map(one => `- ${one}`),
          ...packages.changed.map(one => `! ${one}`),
        ]
  return [
    ...(failed === undefined ? [] : [`**${name}**: ${escape(failed.message)}`, '', ...block('', failed.details)]),
    ...(changes.length === 0 ? [] : [`Packages of **${name}**`, '', ...block('diff', changes)]),
  ]
}

const block = (language: string, lines: readonly string[]): string[] =>
  // Whatever they hold, it stays in the block.
  lines.length === 0 ? [] : [`~~~~${language}`, ...lines.map(line => line.replaceAll('~~~~', '~~~')), '~~~~', '']

const escape = (text: string): string => text.replaceAll(/[|<>\n]/g, ' ')
