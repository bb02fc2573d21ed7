# shellcheck shell=sh disable=SC2154 # names of the files beside this one
# An image is run only if a key of the site has signed its manifest, and only with the kernel, the initramfs and the root that
# the manifest names. Keys and signify came with this initramfs; where a site names no keys, images need no signature.
KEYS=${KEYS-/etc/muster/keys}

verify_image() {
  command -v signify >/dev/null || return 0
  if [ -z "$plan_signature" ] || [ -z "$plan_manifest" ]; then
    fail "the image $plan_image is not signed" 'sign it with a key of the site: muster image sign'
  fi
  manifest=$WORK/manifest
  download "${plan_image#sha256:}" "$plan_manifest" "$manifest"
  signer=$(find_signer "$manifest") ||
    fail "none of the keys that this machine trusts has signed the image $plan_image" \
      'build it for the keys of trust.keys, and sign it with one of them'
  # In strings of JSON quotes have a backslash, so none of them can be taken for an artefact.
  tr -d ' \n' <"$manifest" | sed 's/[{}]/\n/g' >"$WORK/artefacts"
  [ "$(artefact squashfs)" = "$plan_sha256 $plan_size" ] ||
    fail "the manifest that $signer has signed names another root than sha256:$plan_sha256" 'look at: muster boot script NODE'
  # A machine that was adopted goes on with the kernel it was discovered with.
  if [ -z "$adopted" ]; then
    verify_loaded kernel kernel
    verify_loaded initrd initramfs
  fi
  say "verify: the key $signer has signed the image"
}

find_signer() { # FILE: the id of the key
  printf 'untrusted comment: of a manifest\n%s\n' "$plan_signature" >"$WORK/signature"
  for key in "$KEYS"/*; do
    if signify -V -q -p "$key" -x "$WORK/signature" -m "$1" >/dev/null 2>&1; then
      echo "${key##*/}"
      return 0
    fi
  done
  return 1
}

artefact() { # TYPE: its digest and size
  sed -n "s/^\"type\":\"$1\",\"sha256\":\"\\([0-9a-f]\\{64\\}\\)\",\"size\":\\([0-9]\\{1,15\\}\\)\$/\\1 \\2/p" "$WORK/artefacts"
}

# Loaders check nothing, and what they have loaded cannot be looked at any more. What the server has given them can.
verify_loaded() { # TYPE NAME
  wanted=$(artefact "$1")
  [ -n "$wanted" ] || return 0
  servers_in_turn
  for server in $servers; do
    # Cut off after one byte too many: whatever a server sends, it ends.
    wget -q -O - "$server/blob/${wanted% *}" 2>/dev/null | head -c $((${wanted#* } + 1)) | sha256sum >"$WORK/loaded"
    read -r digest _ <"$WORK/loaded"
    if [ "$digest" = "${wanted% *}" ]; then return 0; fi
  done
  : >"$WORK/start-over"
  fail "the $2 that $server gives out is not the one of the image: sha256 $digest instead of ${wanted% *}" \
    'is the boot server well? look at: muster image verify'
}
