# shellcheck shell=sh
# Runs the commands that come over a serial line, one at a time. Handed to the shell that a machine under test has on its
# second port; see shell.ts for the other side. The line is raw: bytes go over it as they are. It says, a line each:
#   next                       and gets a line back: bytes of the command, bytes of its input, seconds, bytes to keep
#   more BYTES                 and gets so many: few enough for the buffers of a terminal, for nobody tells a sender to wait
#   done STATUS STDOUT STDERR  and as many bytes of each follow
#   full                       what came could not be kept
# Starting a program takes a while in an emulated machine: there are no more of them than need be.
set -u
# What a shell has to say of jobs that were killed is for nobody.
exec 2>/dev/null
dir=$(mktemp -d /run/muster-trial.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP TERM
block=16384
count=0
group=
# Where there is one: whatever a command starts can be found there and ended.
cgroup=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
[ -w "$cgroup/cgroup.procs" ] || cgroup=

take() { # BYTES FILE
  : >"$2" || return 1
  left=$1
  while [ "$left" -gt 0 ]; do
    part=$left
    [ "$part" -le "$block" ] || part=$block
    echo "more $part"
    # Never a byte more than that: the next ones are for somebody else.
    dd bs="$part" count=1 iflag=fullblock >>"$2" || return 1
    left=$((left - part))
  done
}

keep() { # NAME BYTES: the beginning of what comes through a pipe; the rest is read, and forgotten
  head -c "$2" >"$dir/$1"
  exec cat >/dev/null
}

one_of() { # FILE: the first process of a cgroup in $pid
  pid=
  read -r pid <"$1/cgroup.procs" && [ -n "$pid" ]
}

# What a command has left running goes on, as on any machine, and must neither speak nor end with the next one.
make_room() {
  if [ -n "$group" ] && ! one_of "$group"; then return 0; fi
  count=$((count + 1))
  group=${cgroup:+$cgroup/muster-trial-$$-$count}
  [ -z "$group" ] || mkdir "$group" || group=
  rm -f "$dir/stdout.pipe" "$dir/stderr.pipe"
  # Whoever has given up being root may still write to /dev/stderr.
  mkfifo -m 666 "$dir/stdout.pipe" "$dir/stderr.pipe"
}

end_all() {
  tries=0
  # Who is killed may just have started another.
  while [ -n "$group" ] && one_of "$group" && [ "$tries" -lt 10000 ]; do
    kill -KILL "$pid"
    tries=$((tries + 1))
  done
  [ ! -s "$dir/pid" ] || kill -KILL "-$(cat "$dir/pid")"
}

watch() { # SECONDS
  nap=
  trap '[ -z "$nap" ] || kill "$nap"; exit' TERM
  sleep "$1" &
  nap=$!
  wait "$nap"
  echo late >"$dir/late"
  end_all
  # Somebody who got away may hold the pipes.
  sleep 1 &
  nap=$!
  wait "$nap"
  kill "$out" "$err"
}

# In a session of its own, for the line is not its terminal; and not in the background, where it could not be interrupted.
# shellcheck disable=SC2016 # for the other shell
START='{ echo $$ >"$1/pid"; [ -z "$2" ] || echo $$ >"$2/cgroup.procs"; } 2>/dev/null; . "$1/command"'

run() { # SECONDS KEEP: the exit status in $status
  for name in late pid stdout stderr; do : >"$dir/$name"; done
  make_room
  keep stdout "$2" <"$dir/stdout.pipe" &
  out=$!
  keep stderr "$2" <"$dir/stderr.pipe" &
  err=$!
  watch "$1" &
  watcher=$!
  (exec setsid sh -c "$START" sh "$dir" "$group") <"$dir/input" >"$dir/stdout.pipe" 2>"$dir/stderr.pipe"
  status=$?
  wait "$out"
  wait "$err"
  kill "$watcher"
  wait "$watcher"
  [ ! -s "$dir/late" ] || status=124
}

show() { # FILE BYTES: no more than that, for whoever got away may still write
  [ "$2" = 0 ] || head -c "$2" "$1"
}

while echo next && read -r bytes input seconds kept; do
  if ! take "$bytes" "$dir/command" || ! take "$input" "$dir/input"; then
    echo full
    continue
  fi
  run "$seconds" "$kept"
  # shellcheck disable=SC2046 # two numbers
  set -- $(stat -c %s "$dir/stdout" "$dir/stderr")
  echo "done $status $1 $2"
  show "$dir/stdout" "$1"
  show "$dir/stderr" "$2"
done
