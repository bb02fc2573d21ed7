import { expect, test } from 'vitest'
import { LOADERS, servedLoaders } from './loaders.ts'

test('each architecture is in the table once', () => {
  const archs = LOADERS.flatMap(loader => loader.archs)
  expect(archs.toSorted((a, b) => a - b)).toEqual([0x00, 0x06, 0x07, 0x09, 0x0b, 0x10, 0x13])
})

test("Debian's loaders serve x86-64; arm64 waits for a file of the site's", () => {
  expect(servedLoaders({}).map(({ archs, file, source }) => [archs, file, source])).toEqual([
    [[0x00], 'undionly.kpxe', '/usr/lib/ipxe/undionly.kpxe'],
    [[0x06, 0x07, 0x09], 'snponly.efi', '/usr/lib/ipxe/snponly.efi'],
    [[0x10], 'ipxe.efi', '/usr/lib/ipxe/ipxe.efi'],
  ])
})

test("the site's own file takes the place of Debian's, over TFTP and over HTTP, under the same name", () => {
  const served = servedLoaders({ efi64: '/srv/site/files/signed.efi', arm64: '/srv/site/files/arm.efi' })
  expect(served.map(({ over, file, source }) => [over, file, source])).toEqual([
    ['tftp', 'undionly.kpxe', '/usr/lib/ipxe/undionly.kpxe'],
    ['tftp', 'snponly.efi', '/srv/site/files/signed.efi'],
    ['http', 'ipxe.efi', '/srv/site/files/signed.efi'],
    ['tftp', 'ipxe-arm64.efi', '/srv/site/files/arm.efi'],
    ['http', 'ipxe-arm64.efi', '/srv/site/files/arm.efi'],
  ])
})
