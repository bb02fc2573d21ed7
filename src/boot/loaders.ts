/**
 * Which loader a machine is given, by what its firmware says it is: option 93, numbers of RFC 4578 and IANA's list
 * behind it. All are iPXE; Debian's package `ipxe` brings those for x86-64, a site may put its own in their place.
 */
export interface Loader {
  readonly platform: keyof Loaders
  /** By TFTP, or fetched by a UEFI that boots over HTTP. */
  readonly over: 'tftp' | 'http'
  readonly archs: readonly number[]
  /** Its name, in the TFTP directory and below /loader/. */
  readonly file: string
  /** Where it is unless the site has its own. */
  readonly stock?: string
}

/** The site's own files. */
export interface Loaders {
  readonly bios?: string
  readonly efi64?: string
  readonly arm64?: string
}

/** One that can be given out, and the file it is made from. */
export interface ServedLoader extends Loader {
  readonly source: string
}

const DEBIAN = '/usr/lib/ipxe'

export const LOADERS: readonly Loader[] = [
  { platform: 'bios', over: 'tftp', archs: [0x00], file: 'undionly.kpxe', stock: `${DEBIAN}/undionly.kpxe` },
  // 0x07 is what x86-64 firmware sends, 0x09 what the standard once said; some 64-bit firmware calls itself 0x06. The
  // firmware's own driver for the card it boots from is the one that is sure to work: snponly.
  { platform: 'efi64', over: 'tftp', archs: [0x06, 0x07, 0x09], file: 'snponly.efi', stock: `${DEBIAN}/snponly.efi` },
  { platform: 'efi64', over: 'http', archs: [0x10], file: 'ipxe.efi', stock: `${DEBIAN}/ipxe.efi` },
  { platform: 'arm64', over: 'tftp', archs: [0x0b], file: 'ipxe-arm64.efi' },
  { platform: 'arm64', over: 'http', archs: [0x13], file: 'ipxe-arm64.efi' },
]

/** Those there is a file for: a machine of another kind gets an address and no loader. */
export function servedLoaders(loaders: Loaders): ServedLoader[] {
  return LOADERS.flatMap(loader => {
    const source = loaders[loader.platform] ?? loader.stock
    return source === undefined ? [] : [{ ...loader, source }]
  })
}
