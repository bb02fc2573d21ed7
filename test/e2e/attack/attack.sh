#!/bin/sh
# What an intruder on node A does to get at what belongs to node B: first as a user, then as root. Every attempt is counted; whatever
# it yields that is B's is a leak. What is A's own, root of A may have, and nobody else. Values of B come from /etc/attack/target.
# shellcheck disable=SC2154 # what is known of A and B
set -u
# shellcheck source=/dev/null
. /etc/attack/target
me=$(id -un)
out=/tmp/attack.$me
rm -rf "$out"
mkdir "$out"
attempts=0 leaks=0

tell() { printf 'attack: %s\n' "$*" >&9; }

# Anything that is B's; of a user, anything that is secret at all.
case $me in root) forbidden='CANARY-B' ;; *) forbidden='CANARY-' ;; esac

tried() { # WHAT: looks at what it yielded, in $out/body
  attempts=$((attempts + 1))
  # No credential and no token is ever given to somebody else.
  if grep -aqE "$forbidden|^(credential|token)=" "$out/body" 2>/dev/null; then
    leaks=$((leaks + 1))
    tell "LEAK by $me: $1: $(grep -aE "$forbidden|^(credential|token)=" "$out/body" | head -c 300 | tr -c '[:print:]' ' ')"
  fi
  : >"$out/body"
}

ask() { # WHAT CURL-OPTION…
  what=$1
  shift
  curl --silent --insecure --path-as-is --max-time 8 --connect-timeout 4 --output "$out/body" "$@" 2>/dev/null
  tried "$what"
}

look() { # WHAT COMMAND…
  what=$1
  shift
  "$@" >"$out/body" 2>/dev/null
  tried "$what"
}

json() { # PATH BODY CURL-OPTION…
  path=$1 body=$2
  shift 2
  ask "POST $path $body" --header 'Content-Type: application/json' --data-binary "$body" "$@" "$path"
}

secret=$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n')
claim=$(printf '%s' "$secret" | sha256sum | cut -d ' ' -f 1)
boot_of() { # MAC CURL-OPTION…: as a loader asks for it
  script="$http/boot/script?mac=$1"
  shift
  curl --silent --max-time 4 "$@" "$script" 2>/dev/null | sed -n 's/.*muster\.boot=\([0-9a-f]*\).*/\1/p' | head -n 1
}

files() { # WHAT FILE…: all at once, under emulation every program costs
  what=$1
  shift
  attempts=$((attempts + $# - 1))
  timeout 60 head -q -c 4000000 "$@" >"$out/body" 2>/dev/null
  tried "$what"
}

machine() { # what lies about
  files 'read command lines' /proc/cmdline /proc/[0-9]*/cmdline
  files 'read environments' /proc/[0-9]*/environ
  files 'read what the agent keeps' /run/muster/* /run/muster/files.d/*
  files 'read files' /etc/secret.conf /etc/shadow /tmp/* /var/log/* /run/log/journal/*/*
  look 'read the kernel log' dmesg
  look 'read the journal' timeout 20 journalctl --no-pager
  look 'list processes' ps axeww
  look 'search everything that can be read' timeout 120 grep -rsha CANARY- /run /tmp /var /etc /home
}

routes() { # every route, of every server there is, as if we were B
  count=0
  : >"$out/config"
  for base in "$http" "$https" "$api"; do
    for path in / /boot.ipxe "/boot/script?mac=$b_mac" "/boot/step?mac=$b_mac&boot=$b_boot&step=boot" /healthz /ca.pem \
      "/discover/next?id=$b_id" "/discover/next?id=$b_id&boot=$b_boot" /node/files /node/files/ "/node/files?node=$b" \
      "/node/files/$b" "/node/files/../$b" "/node/files/%2e%2e/$b" "/node/$b/files" "/node/files/$b_sha256" "/blob/$b_sha256" \
      /blob/../../ca/ca.key /blob/..%2f..%2fca%2fca.key /loader/../../../ca/ca.key /loader/..%2f..%2fstate.db \
      "/api/v1/nodes/$b" "/api/v1/nodes/$b/files" "/api/v1/nodes/$b/files?path=/etc/secret.conf" /api/v1/boot/view /api/v1/events \
      /api/v1/ca /api/v1/tokens /api/v1/site /metrics /openapi.json; do
      count=$((count + 1))
      printf 'url = "%s"\noutput = "%s"\n' "$base$path" "$out/route.$count" >>"$out/config"
    done
  done
  attempts=$((attempts + count - 1))
  curl --silent --insecure --path-as-is --globoff --connect-timeout 4 --max-time 120 --header "X-Forwarded-For: $b_address" \
    --header "X-Real-IP: $b_address" --header "Forwarded: for=$b_address" --header "X-Muster-Node: $b" --config "$out/config" 2>/dev/null
  cat "$out"/route.* >"$out/body"
  tried 'GET every route'
  for base in "$http" "$https" "$api"; do
    for method in PUT DELETE TRACE; do ask "$method $base/node/files" --request "$method" "$base/node/files"; done
  done
}

enrolling() { # as B, and once more as A
  for mac in "$b_mac" "$a_mac"; do
    for boot in "$b_boot" "$a_boot" "$(boot_of "$mac")" 0000000000000000; do
      json "$https/node/claim" "{\"mac\":\"$mac\",\"boot\":\"$boot\",\"claim\":\"$claim\"}" --header "X-Forwarded-For: $b_address" "$@"
      json "$https/node/credential" "{\"mac\":\"$mac\",\"boot\":\"$boot\",\"token\":\"$claim\",\"secret\":\"$secret\"}" "$@"
    done
  done
  json "$https/node/claim" "{\"mac\":\"$b_mac\",\"boot\":\"../$b_boot\",\"claim\":\"$claim\"}" "$@"
  json "$https/node/claim" "{\"mac\":[\"$b_mac\"],\"boot\":\"$b_boot\",\"claim\":{}}" "$@"
  json "$https/node/claim" "{\"__proto__\":{\"node\":\"$b\"},\"mac\":\"$b_mac\",\"boot\":\"$b_boot\",\"claim\":\"$claim\"}" "$@"
}

credentials() { # that are none, or not B's
  payload=$(printf '{"n":"%s","m":"%s","b":"%s","x":4102444800}' "$b" "$b_mac" "$b_boot" | base64 -w 0 | tr '+/' '-_' | tr -d '=')
  own=$(sed -n 's/^Authorization: Bearer //p' /run/muster/credential 2>/dev/null)
  for held in x m1.. "m1.$payload" "m1.$payload.$claim" "m1.$payload.${own##*.}" "${own%.*}." "$own$own"; do
    ask 'GET files with a forged credential' --header "Authorization: Bearer $held" "$https/node/files/$b_sha256"
    ask 'renew a forged credential' --request POST --header "Authorization: Bearer $held" "$https/node/renew"
  done
  [ -n "$own" ] || return 0
  # Its own is worth something, but only for what is its own.
  for path in "/node/files/$b_sha256" "/node/files?node=$b" "/node/files/../$b" "/node/$b/files" "/node/files/%2e%2e%2f$b"; do
    ask "GET $path with the credential of A" --header "Authorization: Bearer $own" --header "X-Forwarded-For: $b_address" \
      --header "X-Muster-Node: $b" "$https$path"
  done
}

certificates() { # of our own making
  if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$out/key" -out "$out/cert" -days 2 -subj "/CN=$b" 2>/dev/null
    ask "a certificate of B's name" --cert "$out/cert" --key "$out/key" "$https/node/files"
  fi
  ask 'the certificate of the site as our own' --cert /run/muster/ca.pem "$https/node/files"
}

forging() { # its MAC and its address, while B is up
  interface=$(ip -o route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
  ip link set dev "$interface" address "$b_mac"
  ip addr add "$b_address/16" dev "$interface"
  # Somebody has to believe that B is here now: it takes a few tries, and B takes its place back.
  for _ in 1 2 3; do
    for boot in "$b_boot" "$(boot_of "$b_mac" --interface "$b_address")"; do
      json "$https/node/claim" "{\"mac\":\"$b_mac\",\"boot\":\"$boot\",\"claim\":\"$claim\"}" --interface "$b_address" \
        --local-port 512-1023 --max-time 4
    done
  done
  ip addr del "$b_address/16" dev "$interface"
  ip link set dev "$interface" address "$a_mac"
}

machine
routes
enrolling
credentials
certificates
if [ "$me" = root ]; then
  enrolling --local-port 512-1023
  forging
fi
tell "$me made $attempts attempts, $leaks leaks"
