# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# Brings the root of the image into memory. A byte that is wrong is never run: size and sha256 must be those of the plan.
IMAGE=${IMAGE-/image}
MIB=1048576
# Hundredths of a second without a byte.
STALLED=${STALLED-1000}
# With enough of them the digest is worked out while the rest still comes; with few that only slows things down.
CORES=${CORES-$(nproc)}

fetch_root() {
  mkdir -p "$IMAGE"
  file=$IMAGE/$plan_sha256
  require_memory "$plan_size" "$(size_of "$file")"
  # With a limit of its own: whatever a server sends, it cannot fill the memory.
  limit=size=$((plan_size + MIB))
  if grep -q " $IMAGE tmpfs " "$PROC/mounts"; then
    for other in "$IMAGE"/*; do if [ "$other" != "$file" ]; then rm -f "$other"; fi; done
    mount -o "remount,$limit" "$IMAGE"
  else
    mount -t tmpfs -o "mode=0700,$limit" tmpfs "$IMAGE"
  fi
  download "$plan_sha256" "$plan_size" "$file"
  chmod 0400 "$file"
}

require_memory() { # SIZE HAD
  available=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' "$PROC/meminfo") * 1024 + $2))
  # Below that no system starts.
  [ "$available" -ge $(($1 + 64 * MIB)) ] ||
    fail "the image has $(mebibytes "$1"), this machine only $(mebibytes "$available") of free memory" \
      'give it more memory, or a smaller image'
}

download() { # SHA256 SIZE FILE: from whichever server has it, going on where a connection broke
  servers_in_turn
  count=$(echo "$servers" | wc -w)
  failures=0 wrong=0 pieces=0 hash=''
  while :; do
    servers_in_turn
    for server in $servers; do
      had=$(size_of "$3")
      say "fetch: $(mebibytes $(($2 - had))) from $server"
      fetch_began=$clock
      if fetch_from "$server" "$@"; then
        echo "$server" >"$WORK/server"
        now
        took=$((clock - fetch_began + 1))
        say "fetch: $(mebibytes "$2") are here and right, $(mebibytes $((($2 - had) * 100 / took)))/s"
        return 0
      fi
      if [ "$(size_of "$3")" -gt $((had + MIB)) ]; then failures=0; fi
      failures=$((failures + 1))
      say "fetch: $(cat "$WORK/fetch-problem")"
      if [ "$failures" -ge $((count * 3 + 2)) ] || [ "$wrong" -ge $((count * 2 + 1)) ]; then
        fail "$(cat "$WORK/fetch-problem")" 'is the boot server well? look at: muster image verify'
      fi
      sleep "$(back_off "$failures" 15)"
    done
  done
}

fetch_from() { # SERVER SHA256 SIZE FILE: fails with the reason in fetch-problem
  partial=$(size_of "$4")
  if [ "$partial" -lt "$3" ]; then get "$1/blob/$2" "$4" || partial=broken; fi
  size=$(size_of "$4")
  if [ "$size" -lt "$3" ]; then
    forget_hash
    broken "$1 sent $(mebibytes "$size") of $(mebibytes "$3"): $(printable <"$WORK/wget-error")"
    return 1
  fi
  if [ "$size" -gt "$3" ]; then
    forget_hash
    rm -f "$4"
    wrong=$((wrong + 1))
    broken "$1 sent more than the $(mebibytes "$3") of the image"
    return 1
  fi
  # What was taken up again may have been written over from the start: then all of it is read once more.
  if [ "$partial" = 0 ] && [ -n "$hash" ]; then
    wait "$hash" || :
    digest=$(cut -d ' ' -f 1 <"$WORK/digest")
  else
    forget_hash
    digest=$(sha256sum <"$4" | cut -d ' ' -f 1)
  fi
  [ "$digest" != "$2" ] || return 0
  rm -f "$4"
  wrong=$((wrong + 1))
  broken "$1 sent other bytes than those of the image: sha256 $digest instead of $2"
  return 1
}

broken() {
  printf '%s\n' "$1" >"$WORK/fetch-problem"
}

forget_hash() {
  if [ -n "$hash" ]; then kill "$hash" 2>/dev/null || :; fi
  hash=''
}

get() { # URL FILE: goes on where the file ends
  pieces=$((pieces + 1))
  fetched=$WORK/fetched.$pieces
  rm -f "$fetched"
  [ -e "$2" ] || : >"$2"
  wget -q -c -O "$2" "$1" 2>"$WORK/wget-error" &
  wget=$!
  watch_growth "$2" "$fetched" "$wget" &
  if [ "$CORES" -ge 4 ]; then
    follow "$2" "$fetched" | sha256sum >"$WORK/digest" &
    hash=$!
  fi
  got=0
  wait "$wget" || got=$?
  : >"$fetched"
  return "$got"
}

watch_growth() { # FILE END WRITER: Debian's busybox has a wget that waits for ever
  now
  seen=0 grew=$clock shown=$clock
  while sleep 1 && ! [ -e "$2" ]; do
    there=$(size_of "$1")
    now
    if [ "$there" -ne "$seen" ]; then seen=$there grew=$clock; fi
    if [ $((clock - grew)) -ge "$STALLED" ]; then
      echo "nothing came for $((STALLED / 100)) s" >>"$WORK/wget-error"
      kill "$3" 2>/dev/null || :
      return 0
    fi
    if [ $((clock - shown)) -ge 500 ]; then
      shown=$clock
      say "fetch: $(mebibytes "$there") so far"
    fi
  done
}

follow() { # FILE END: writes what is in the file, and what is added to it until END exists
  blocks=0
  while :; do
    # Looked at before the size: nothing comes after it.
    is_last=no
    if [ -e "$2" ]; then is_last=yes; fi
    there=$(($(size_of "$1") / MIB))
    if [ "$there" -gt "$blocks" ]; then
      dd if="$1" bs="$MIB" skip="$blocks" count=$((there - blocks)) 2>/dev/null
      blocks=$there
    elif [ "$is_last" = yes ]; then
      dd if="$1" bs="$MIB" skip="$blocks" 2>/dev/null
      return 0
    else
      sleep 0.05
    fi
  done
}
