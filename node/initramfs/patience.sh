# shellcheck shell=sh disable=SC2154 # names of the files beside this one
# Waiting: long enough that a thousand machines do not knock at once, never for ever.

random_below() { # N ≤ 65536
  echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}

back_off() { # FAILURES LIMIT: seconds to wait, doubling up to the limit, half of it at random
  most=1 count=$1
  while [ "$count" -gt 1 ] && [ "$most" -lt "$2" ]; do
    most=$((most * 2)) count=$((count - 1))
  done
  if [ "$most" -gt "$2" ]; then most=$2; fi
  seconds $((most * 50 + $(random_below $((most * 50 + 1)))))
  echo "$in_seconds"
}

wait_for() { # SECONDS COMMAND…: until the command succeeds
  now
  patient_until=$((clock + $1 * 100))
  shift
  until "$@"; do
    now
    if [ "$clock" -ge "$patient_until" ]; then return 1; fi
    sleep 0.05
  done
}

offer_shell() { # the site allows it: muster.shell=1
  say 'press a key within 10 seconds for a shell'
  keys=$({ timeout 10 head -c 1 </dev/console | wc -c; } 2>/dev/null)
  if [ "$keys" -eq 0 ]; then return 0; fi
  say 'leave the shell to go on'
  setsid cttyhack sh -i </dev/console >/dev/console 2>&1 || :
}
