# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# What every stage uses. Tests let these point elsewhere. Functions that are called often answer in a variable: under an
# emulator every process costs hundredths of a second.
PROC=${PROC-/proc}
SYS=${SYS-/sys}
# What the running system finds: the plan as it was followed, and the log.
RUN=${RUN-/run/muster}
WORK=${WORK-/tmp}
stage=start

now() { # hundredths of a second since the kernel started, in $clock
  read -r uptime _ <"$PROC/uptime"
  # The 1 keeps 08 from being taken for an octal number.
  clock=$((${uptime%.*} * 100 + 1${uptime#*.} - 100))
}

seconds() { # HUNDREDTHS: as 12.34, in $in_seconds
  in_seconds=$(($1 % 100))
  if [ "$in_seconds" -lt 10 ]; then in_seconds=0$in_seconds; fi
  in_seconds=$(($1 / 100)).$in_seconds
}

mebibytes() { # BYTES: as 12.3 MiB
  printf '%d.%d MiB' $(($1 / 1048576)) $(($1 % 1048576 * 10 / 1048576))
}

say() { # TEXT: on the console and in the log
  now
  seconds "$clock"
  printf '[%s] %s\n' "$in_seconds" "$*" >&2
  printf '[%s] %s\n' "$in_seconds" "$*" >>"$RUN/log"
}

fail() { # PROBLEM NEXT-STEP: ends the attempt
  printf '%s; %s\n' "$1" "$2" >"$WORK/problem"
  exit 1
}

size_of() { # FILE: 0 when it is not there
  stat -c %s "$1" 2>/dev/null || echo 0
}

read_line() { # FILE: its first line, in $line; empty when it cannot be read
  line=''
  { read -r line <"$1" || :; } 2>/dev/null
}

printable() { # what a console and JSON can take of the input, of its first line
  head -n 1 | tr -cd '\40-\176' | cut -c 1-200
}

json_string() { # TEXT: as a JSON string; whatever is not printable ASCII becomes a question mark
  printf '"%s"' "$(printf '%s' "$1" | tr -c '\40-\176' '?' | cut -c 1-1000 | sed 's/[\\"]/\\&/g')"
}
