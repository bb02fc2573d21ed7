# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# What every stage uses. Tests let these point elsewhere.
PROC=${PROC-/proc}
SYS=${SYS-/sys}
# What the running system finds: the plan as it was followed, and the log.
RUN=${RUN-/run/muster}
WORK=${WORK-/tmp}
stage=start

now() { # hundredths of a second since the kernel started
  read -r uptime _ <"$PROC/uptime"
  # The 1 keeps 08 from being taken for an octal number.
  echo $((${uptime%.*} * 100 + 1${uptime#*.} - 100))
}

seconds() { # HUNDREDTHS: as 12.34
  printf '%d.%02d' $(($1 / 100)) $(($1 % 100))
}

mebibytes() { # BYTES: as 12.3 MiB
  printf '%d.%d MiB' $(($1 / 1048576)) $(($1 % 1048576 * 10 / 1048576))
}

say() { # TEXT: on the console and in a log that the running system can read
  said="[$(seconds "$(now)")] $*"
  printf '%s\n' "$said" >&2
  printf '%s\n' "$said" >>"$RUN/log"
}

fail() { # PROBLEM NEXT-STEP: ends the attempt
  printf '%s; %s\n' "$1" "$2" >"$WORK/problem"
  exit 1
}

size_of() { # FILE: 0 when it is not there
  stat -c %s "$1" 2>/dev/null || echo 0
}

first_line() { # FILE: without what a console or JSON would stumble over; empty when it cannot be read
  { head -n 1 "$1" 2>/dev/null || :; } | tr -cd '\40-\176' | cut -c 1-200
}

json_string() { # TEXT: as a JSON string; whatever is not printable ASCII becomes a question mark
  printf '"%s"' "$(printf '%s' "$1" | tr -c '\40-\176' '?' | cut -c 1-1000 | sed 's/[\\"]/\\&/g')"
}
