import { describe, expect, test } from 'vitest'
import { type XmlEvent, readXml } from './xml.ts'

const events = (text: string): XmlEvent[] => [...readXml(text)]

test('elements, attributes and text in their order; prefixes, comments and instructions are left out', () => {
  const text = `\uFEFF<?xml version="1.0"?>
<!-- <not> this -->
<ds:a xmlns:ds="urn:x" b = 'it&apos;s' c="&lt;&#65;&#x1F600;&gt;">one &amp; two<![CDATA[ <three> & ]]><e/></ds:a>
`
  expect(events(text)).toEqual([
    { kind: 'open', name: 'a', attributes: { 'xmlns:ds': 'urn:x', b: "it's", c: '<A😀>' } },
    { kind: 'text', text: 'one & two' },
    { kind: 'text', text: ' <three> & ' },
    { kind: 'open', name: 'e', attributes: {} },
    { kind: 'close', name: 'e' },
    { kind: 'close', name: 'a' },
  ])
})

describe('what is not well-formed is refused, with the line', () => {
  test.each([
    ['', 'line 1: is empty'],
    ['\n<!-- only -->', 'line 2: is empty'],
    ['words', 'line 1: has text outside of its root'],
    ['<a/>\nwords', 'line 1: has text outside of its root'],
    ['<a/>\n<b/>', 'line 2: has more than one root'],
    ['<a>\n<b>\n</a>', 'line 3: </a> closes what is not open'],
    ['</a>', 'line 1: </a> closes what is not open'],
    ['<a>\n<b></b>', 'line 2: <a> is not closed'],
    ['<a b=c/>', 'line 1: is not XML'],
    ['<a b="1"c="2"/>', 'line 1: is not XML'],
    ['<a b="<"/>', 'line 1: is not XML'],
    ['<a b="1" b="2"/>', 'line 1: attribute b is there twice'],
    ['<a', 'line 1: is not XML'],
    ['<a>&nbsp;</a>', 'line 1: has an entity that XML does not have itself'],
    ['<a>&constructor;</a>', 'line 1: has an entity that XML does not have itself'],
    ['<a>this & that</a>', 'line 1: has an entity that XML does not have itself'],
    ['<a>&#xD800;</a>', 'line 1: has an entity that XML does not have itself'],
    ['<!-- a', 'line 1: <!-- has no -->'],
    ['<a><![CDATA[ b</a>', 'line 1: CDATA has no end'],
    ['<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', 'line 1: a document type is not read'],
  ])('%j', (text, message) => {
    expect(() => events(text)).toThrow(expect.objectContaining({ name: 'MusterError', message }))
  })

  test('elements in elements in elements', () => {
    expect(events('<a>'.repeat(256) + '</a>'.repeat(256))).toHaveLength(512)
    expect(() => events('<a>'.repeat(257))).toThrow('line 1: is nested too deeply')
  })
})
