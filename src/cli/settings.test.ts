import { describe, expect, it, test } from 'vitest'
import { parseSettings } from './commands/edit.ts'

describe('parseSettings', () => {
  test.each<[word: string, settings: Record<string, unknown>]>([
    ['boot.root=ram', { 'boot.root': 'ram' }],
    ['boot.image=compute@dev', { 'boot.image': 'compute@dev' }],
    ['vars.memory=2048', { 'vars.memory': 2048 }],
    ['vars.version="2048"', { 'vars.version': '2048' }],
    ['vars.fast=true', { 'vars.fast': true }],
    // YAML 1.2: these are words, not booleans.
    ['vars.country=no', { 'vars.country': 'no' }],
    ['groups=[compute, gpu]', { groups: ['compute', 'gpu'] }],
    ['groups=[compute]', { groups: ['compute'] }],
    ['update={maxUnavailable: 10%}', { update: { maxUnavailable: '10%' } }],
    ['interfaces.prov.mac=52:54:00:12:34:56', { 'interfaces.prov.mac': '52:54:00:12:34:56' }],
    ['interfaces.prov.address=10.77.1.1', { 'interfaces.prov.address': '10.77.1.1' }],
    ['files./etc/motd=motd.j2', { 'files./etc/motd': 'motd.j2' }],
    // The first = ends the path; what follows is the value's own.
    ['boot.args=[a=b, c=d]', { 'boot.args': ['a=b', 'c=d'] }],
    // One item, or several at once.
    ['boot.args+=quiet', { 'boot.args+': ['quiet'] }],
    ['boot.args+=numa=off', { 'boot.args+': ['numa=off'] }],
    ['boot.args+=[quiet, numa=off]', { 'boot.args+': ['quiet', 'numa=off'] }],
    // Templates are not YAML flow maps.
    ['boot.image=compute@{{ vars.channel }}', { 'boot.image': 'compute@{{ vars.channel }}' }],
    ['boot.image={{ vars.image }}', { 'boot.image': '{{ vars.image }}' }],
    ['vars.x={% if index %}a{% endif %}', { 'vars.x': '{% if index %}a{% endif %}' }],
    // Taken out.
    ['boot.image=', { 'boot.image': null }],
  ])('%s', (word, settings) => {
    expect(parseSettings([word])).toEqual(settings)
  })

  it('takes several', () => {
    expect(parseSettings(['boot.root=ram', 'vars.a=1'])).toEqual({ 'boot.root': 'ram', 'vars.a': 1 })
  })

  it('is empty for none', () => {
    expect(parseSettings([])).toEqual({})
  })

  it('adds up what is appended to the same path twice', () => {
    expect(parseSettings(['boot.args+=quiet', 'boot.args+=numa=off'])).toEqual({ 'boot.args+': ['quiet', 'numa=off'] })
  })

  test.each(['boot.root', '=ram', ''])('%j is not a setting', word => {
    expect(() => parseSettings([word])).toThrow(
      expect.objectContaining({ code: 'USAGE', message: `${word} is not a setting: write path=value` }),
    )
  })

  test.each(['groups=[compute', 'vars.x="open', 'vars.x={a: 1'])('%s is not valid YAML', word => {
    expect(() => parseSettings([word])).toThrow(
      expect.objectContaining({
        code: 'USAGE',
        message: `${word}: the value is not valid YAML`,
        hint: 'put it in quotes',
      }),
    )
  })
})
