import { describe, expect, test } from 'vitest'
import { createRenderer, isTemplate, referencedPaths } from './template.ts'

const renderer = createRenderer()

describe('render', () => {
  test.each([
    ['{{ index }}', { index: 5 }, 5],
    ['{{ index + 1 }}', { index: 5 }, 6],
    ['{{ index // 32 }}', { index: 70 }, 2],
    ['rack{{ index // 32 }}', { index: 70 }, 'rack2'],
    ['{{ a }}-{{ b }}', { a: 1, b: 'x' }, '1-x'],
    ["{{ '10.77.1.0' | ip_add(index) }}", { index: 300 }, '10.77.2.44'],
    ["{{ '10.0.0.0' | ip_add((index // 250) * 256 + index % 250) }}", { index: 501 }, '10.0.2.1'],
    ["{{ '%03d' | format(index) }}", { index: 7 }, '007'],
    ["{{ '%x' | format(index) }}", { index: 255 }, 'ff'],
    ["{{ vars.x | default('none') }}", { vars: {} }, 'none'],
    ["{{ 'a' if index > 3 else 'b' }}", { index: 4 }, 'a'],
    ["{{ '07' | int }}", {}, 7],
    ["{{ {'a': [1, 2]} }}", {}, { a: [1, 2] }],
    ['{% if index > 3 %}big{% else %}small{% endif %}', { index: 4 }, 'big'],
  ])('%s', (template, context, expected) => {
    expect(renderer.render(template, context)).toEqual(expected)
  })

  test.each([
    ['{{ nope }}', 'undefined value'],
    ['x{{ nope }}', 'undefined value'],
    ['{{ vars.nope.deeper }}', 'undefined value'],
    ['{{ 1 + }}', 'syntax error: unexpected end of input, expected expression'],
    ['x{{ 1 + }}', 'syntax error: unexpected end of variable block'],
    ['{{ 1 | nope }}', 'unknown filter: filter nope is unknown'],
    ["{{ '10.0.0.0' | ip_add('x') }}", 'NaN is not a whole number'],
    [
      '{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}',
      'does too much work for one value',
    ],
  ])('%s is refused', (template, reason) => {
    expect(() => renderer.render(template, { vars: {} })).toThrow(reason)
  })
})

test('isTemplate', () => {
  expect(isTemplate('{{ index }}')).toBe(true)
  expect(isTemplate('{% if x %}{% endif %}')).toBe(true)
  expect(isTemplate('n[001-128]')).toBe(false)
})

test.each([
  ['{{ index }}', [['index']]],
  ['a {{ vars.rack }} {{ name }}', [['vars', 'rack'], ['name']]],
  ["{{ '10.0.0.0' | ip_add(index) }}", [['index']]],
  ["{{ interfaces['prov'].mac }}", [['interfaces', 'prov', 'mac']]],
  ['{{ a is defined and b is not none }}', [['a'], ['and'], ['b']]],
  ['plain words', []],
])('referencedPaths(%s)', (template, expected) => {
  expect(referencedPaths(template)).toEqual(expected)
})
