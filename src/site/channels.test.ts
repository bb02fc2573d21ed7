import { describe, expect, it } from 'vitest'
import { problemsOf } from './testing.ts'

const KEY = 'ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo='
const of = (text: string): Promise<string[]> => problemsOf({ 'site.yaml': `site: demo\n${text}\n` })

describe('keys', () => {
  it.for([
    `trust: { keys: { ci: { public: "${KEY}" } } }`,
    `trust: { keys: { ci: { public: "${KEY}", until: 2027-12-31, revoked: 2026-11-16 } } }`,
    'trust: { keys: {} }',
  ])('%s is right', async text => {
    expect(await of(text)).toEqual([])
  })

  it.for([
    ['trust: { keys: { ci: {} } }', 'site.yaml:2:18: trust.keys.ci.public: is missing'],
    [
      'trust: { keys: { ci: { public: "ssh-ed25519 AAAA" } } }',
      'site.yaml:2:32: trust.keys.ci.public: is not a public key (ed25519:…)',
    ],
    [
      `trust: { keys: { ci: { public: "${KEY}", until: tomorrow } } }`,
      'site.yaml:2:95: trust.keys.ci.until: is not a day such as 2027-12-31',
    ],
  ])('%s', async ([text = '', problem]) => {
    expect(await of(text)).toEqual([problem])
  })
})

describe('channels', () => {
  it.for([
    'channels: { dev: {} }',
    'channels: { dev: { tests: [root] }, stable: { tests: [root, container, vm], after: { channel: dev, time: 2d } } }',
    'channels: { stable: { size: 2 GB } }',
    `trust: { keys: { ci: { public: "${KEY}" } } }\nchannels: { stable: { signed: [ci] } }`,
  ])('%s is right', async text => {
    expect(await of(text)).toEqual([])
  })

  it.for([
    [
      'channels: { stable: { test: [root] } }',
      'site.yaml:2:23: channels.stable.test: unknown key — did you mean tests?',
    ],
    [
      `trust: { keys: { ci: { public: "${KEY}" } } }\nchannels: { stable: { signed: [cy] } }`,
      'site.yaml:3:32: channels.stable.signed.0: there is no key cy in trust.keys — did you mean ci?',
    ],
    [
      'channels: { stable: { after: { channel: stable, time: 2d } } }',
      'site.yaml:2:41: channels.stable.after.channel: is this channel itself',
    ],
    [
      'channels: { stable: { size: large } }',
      'site.yaml:2:29: channels.stable.size: is not a size such as 900 MB or 2 GB',
    ],
    [
      'channels: { stable: { after: { channel: dev, time: long } } }',
      'site.yaml:2:52: channels.stable.after.time: is not a duration such as 30s, 5m or 1h',
    ],
  ])('%s', async ([text = '', problem]) => {
    expect(await of(text)).toEqual([problem])
  })
})
