/** First and last byte, as in `bytes=0-99`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * The part of so many bytes that a Range header asks for (RFC 9110, 14.2). Undefined is all of it: no header, several parts at
 * once, another unit or rubbish may all be answered with the whole. None of it is there: 'unsatisfiable'.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < start) return undefined
  return start >= size ? 'unsatisfiable' : { start, end }
}
