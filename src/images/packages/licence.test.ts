import { expect, test } from 'vitest'
import { isSpdxExpression } from './licence.ts'

test.each([
  'MIT',
  'GPL-2.0-only',
  'GPL-2.0+',
  'Apache-1.1+',
  'MIT AND Zlib',
  'MIT OR Apache-2.0',
  '(MIT OR Apache-2.0) AND BSD-3-Clause',
  '((MIT))',
  'GPL-2.0-only WITH Linux-syscall-note',
  'GPL-3.0-or-later WITH GCC-exception-3.1 AND LGPL-2.1-or-later',
  'MIT AND (GPL-2.0-or-later OR Zlib)',
])('%s is one', text => {
  expect(isSpdxExpression(text)).toBe(true)
})

test.each([
  '',
  'GPLv2+',
  'GPL-2.0-only and MIT',
  'MIT Zlib',
  'MIT AND',
  'AND MIT',
  'MIT AND AND MIT',
  '(MIT',
  'MIT)',
  '()',
  'Public Domain',
  'mit',
  'MIT WITH',
  'MIT WITH Something',
  'GPL-2.0++',
  'MIT/X11',
  'custom:LicenseRef-1',
  `${'('.repeat(5000)}MIT`,
  'MIT AND '.repeat(5000),
])('%j is none', text => {
  expect(isSpdxExpression(text)).toBe(false)
})
