# shellcheck shell=sh disable=SC2154 # names of the files beside this one
# Telling the servers how far this machine is. No boot ever waits for that, and none fails because of it.
ANSWER_WITHIN=${ANSWER_WITHIN-4}

servers_in_turn() { # in $servers, with spaces between: the one that answered last comes first
  read_line "$WORK/server"
  servers='' rest=$plan_servers,
  while [ -n "$rest" ]; do
    if [ "${rest%%,*}" = "$line" ]; then servers="$line $servers"; else servers="$servers ${rest%%,*}"; fi
    rest=${rest#*,}
  done
}

post() { # PATH JSON ANSWER-FILE: to the first server that takes it
  servers_in_turn
  for server in $servers; do
    if timeout "$ANSWER_WITHIN" wget -q -O "$3" --header 'Content-Type: application/json' --post-data "$2" \
      "$server$1" 2>/dev/null; then
      echo "$server" >"$WORK/server"
      return 0
    fi
  done
  return 1
}

send_report() { # PHASE BEGAN DETAIL
  read_line "$WORK/online"
  if [ -z "$line" ] || [ -z "$plan_servers" ]; then return 0; fi
  detail=''
  if [ -n "$3" ]; then detail=,\"detail\":$(json_string "$3"); fi
  now
  seconds $((clock - $2))
  # The plan holds only what needs no escape.
  post /node/report \
    "{\"boot\":\"$plan_boot\",\"mac\":\"${plan_mac:-$line}\",\"phase\":\"$1\",\"ago\":$in_seconds$detail}" /dev/null || :
}

report_begin() { # BEGAN: the two phases that are known once there is a network, in the background
  now
  fetch_begins=$clock
  {
    send_report initrd "$1" ''
    send_report fetch "$fetch_begins" ''
  } &
  first_reports=$!
}

report_root() { # the last chance before the network is left to the system; but it must not take long
  now
  {
    wait_for 4 has_ended "$first_reports" || :
    send_report root "$clock" ''
  } &
  wait_for 8 has_ended $! || kill $! 2>/dev/null || :
}

report_failure() { # DETAIL
  plan_servers=${plan_servers-} plan_boot=${plan_boot-} plan_mac=${plan_mac-}
  now
  send_report failed "$clock" "$1"
}

has_ended() { # PID of a child
  read_line "$PROC/$1/stat"
  case $line in '' | *') Z '*) ;; *) return 1 ;; esac
}
