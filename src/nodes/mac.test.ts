import { describe, expect, it } from 'vitest'
import { Mac } from './mac.ts'

describe('a MAC address', () => {
  it.for(['52:54:00:12:34:ab', '52:54:00:12:34:AB', '52-54-00-12-34-ab', '52-54-00-12-34-AB', '52:54-00:12-34:ab'])(
    '%s is 52:54:00:12:34:ab',
    text => {
      expect(Mac.parse(text)).toBe('52:54:00:12:34:ab')
    },
  )

  it.for([
    '',
    '52:54:00:12:34',
    '52:54:00:12:34:ab:cd',
    '525400123456',
    '52:54:00:12:34:ag',
    '52:54:00:12:34:ab\n',
    ' 52:54:00:12:34:ab',
    '0:54:00:12:34:ab',
    '52::54:00:12:34:ab',
    '52.54.00.12.34.ab',
    '../../etc/passwd',
    'f'.repeat(1000),
    // Two letters that become one when they are made lower case.
    'K:54:00:12:34:ab',
  ])('%j is none', text => {
    expect(Mac.safeParse(text).success).toBe(false)
  })

  it('says so', () => {
    expect(Mac.safeParse('52:54').error?.issues.map(issue => issue.message)).toEqual(['is not a MAC address'])
  })

  it.for([[undefined], [null], [525400123456], [['52:54:00:12:34:ab']]])('%j is none', ([value]) => {
    expect(Mac.safeParse(value).success).toBe(false)
  })
})
