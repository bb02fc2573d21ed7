import { expect, test } from 'vitest'
import { readJUnit } from './junit.ts'

test('cases of nested suites, with what became of them', () => {
  const text = `<?xml version="1.0" encoding="utf-8"?>
<testsuites name="all">
  <testsuite name="outer" tests="5">
    <properties><property name="failure" value="x"/></properties>
    <testcase classname="net.Socket" name="opens" time="0.25"/>
    <testcase classname="net.Socket" name="reads &lt;all&gt;" time="1,234.5">
      <failure message="expected 1" type="AssertionError">expected 1
at net.c:3</failure>
      <failure message="a second one">is left out</failure>
    </testcase>
    <testsuite name="inner">
      <testcase name="crashes"><error type="Segfault"/><system-out>lots of it</system-out></testcase>
      <testcase name="waits" time="soon"><skipped message="no network"/></testcase>
      <testcase name="rests"><skipped/></testcase>
    </testsuite>
    <system-out><![CDATA[<testcase name="none"/>]]></system-out>
  </testsuite>
</testsuites>
`
  expect(readJUnit(text)).toEqual([
    { attribute: 'net.Socket opens', status: 'passed', seconds: 0.25 },
    { attribute: 'net.Socket reads <all>', status: 'failed', message: 'expected 1\nat net.c:3', seconds: 1234.5 },
    { attribute: 'crashes', status: 'failed', message: 'Segfault' },
    { attribute: 'waits', status: 'skipped', message: 'no network' },
    { attribute: 'rests', status: 'skipped' },
  ])
})

test('message and text are both shown where they differ', () => {
  const text = '<testsuite><testcase name="a"><failure message="wrong">line 3</failure></testcase></testsuite>'
  expect(readJUnit(text)).toEqual([{ attribute: 'a', status: 'failed', message: 'wrong\nline 3' }])
})

test.each([
  ['<testsuite tests="0"/>', 'has no test case'],
  ['<html><testcase name="a"/></html>', "is not JUnit's XML: its root is <html>"],
])('%s is a failure', (text, message) => {
  expect(readJUnit(text)).toEqual([{ attribute: 'output', status: 'failed', message }])
})
