import { archiveOf } from '../../boot/initramfs/archive.ts'
import { type Manifest, manifestText } from '../../images/manifest.ts'
import { keyId, newPrivateKey, parsePrivateKey, publicText, signBytes } from '../../images/trust/keys.ts'
import { signifyKey, signifySignature } from '../../images/trust/signify.ts'

/**
 * Images are tested before anybody signs them, and the initramfs of a site with keys runs nothing that is not signed. So a trial
 * signs with a key of its own, which is gone when it ends, and has the machine trust that one as well.
 */
export function trialTrust(manifest: Manifest): { readonly signature: string; readonly archive: Buffer } {
  const key = parsePrivateKey(newPrivateKey(), 'the trial')
  const text = publicText(key)
  const id = keyId(text)
  return {
    signature: signifySignature({ key: id, signature: signBytes(Buffer.from(manifestText(manifest)), key) }),
    archive: archiveOf([{ path: `etc/muster/keys/${id}`, content: signifyKey(text) }]),
  }
}
