const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** humanSize(1_100_000_000) → '1.1 GB': two digits at least, decimal units, as disks and networks are sold. */
export function humanSize(bytes: number): string {
  let value = Math.abs(bytes)
  let unit = 0
  // 999.5 would be shown as 1000 of this unit rather than 1.0 of the next.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  const digits = unit === 0 || value >= 9.95 ? 0 : 1
  return `${bytes < 0 ? '-' : ''}${value.toFixed(digits)} ${UNITS[unit]}`
}

const SIZE = /^(\d{1,16}(?:\.\d{1,16})?) ?([kmgtp]?)(i?)b?$/i

/** What people write for a size: '1.5 GB', '900M', '2GiB', 4096; undefined when it is none. */
export function parseSize(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? value : undefined
  if (typeof value !== 'string') return undefined
  const [, amount, prefix = '', binary = ''] = SIZE.exec(value.trim()) ?? []
  if (amount === undefined) return undefined
  // There are neither kinds of bytes nor parts of them.
  if (prefix === '' && (binary !== '' || amount.includes('.'))) return undefined
  const power = ['', 'k', 'm', 'g', 't', 'p'].indexOf(prefix.toLowerCase())
  const bytes = Math.round(Number(amount) * (binary === '' ? 1000 : 1024) ** power)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}
