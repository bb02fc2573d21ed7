# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# Telling the servers how far this machine is. No boot ever waits for that, and none fails because of it.

servers_in_turn() { # one per line, the one that answered last first
  good=$(cat "$WORK/server" 2>/dev/null || :)
  if [ -n "$good" ]; then echo "$good"; fi
  echo "$plan_servers" | tr ',' '\n' | grep -vxF "${good:-none}" || :
}

post() { # PATH JSON: to the first server that takes it; prints its answer
  for server in $(servers_in_turn); do
    if answer=$(timeout 4 wget -q -O - --header 'Content-Type: application/json' --post-data "$2" "$server$1" 2>"$WORK/post-error" | head -c 8192) &&
      ! [ -s "$WORK/post-error" ]; then
      echo "$server" >"$WORK/server"
      printf '%s\n' "$answer"
      return 0
    fi
  done
  return 1
}

send_report() { # PHASE BEGAN DETAIL
  [ -e "$WORK/online" ] || return 0
  detail=''
  if [ -n "$3" ]; then detail=,\"detail\":$(json_string "$3"); fi
  post /node/report "{\"boot\":$(json_string "$plan_boot"),\"mac\":$(json_string "${plan_mac:-$(cat "$WORK/online")}"),\"phase\":\"$1\",\"ago\":$(seconds "$(($(now) - $2))")$detail}" >/dev/null || :
}

report() { # PHASE BEGAN: in the background
  send_report "$1" "$2" '' &
}

report_and_wait() { # PHASE BEGAN: but not long: the last chance before the network is left to the system
  send_report "$1" "$2" '' &
  last_report=$!
  wait_for 4 has_ended "$last_report" || kill "$last_report" 2>/dev/null || :
}

report_failure() { # DETAIL
  plan_servers=${plan_servers-} plan_boot=${plan_boot-} plan_mac=${plan_mac-}
  if [ -n "$plan_servers" ]; then send_report failed "$(now)" "$1"; fi
}

has_ended() { # PID of a child
  case $(cut -d ' ' -f 3 "$PROC/$1/stat" 2>/dev/null || :) in '' | Z) ;; *) return 1 ;; esac
}
