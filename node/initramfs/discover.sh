# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# A machine nobody knows says what it is, and asks what it is to become until somebody has decided.

discover() {
  say 'discover: nobody knows this machine yet; it says what it is and waits to be adopted: muster discover ls'
  rm -f "$WORK"/lldp.* "$WORK/bmc"
  look_for_neighbours
  look_for_bmc
  told='' told_at=0 id='' unheard=0 pause=5
  until adopted; do
    if [ "$unheard" -ge 12 ]; then
      fail 'no server listens to this machine' 'is the boot server running, and can this machine reach it?'
    fi
    sleep "$pause"
  done
}

adopted() { # one round: says what is new, asks for what is next
  tell || { unheard=$((unheard + 1)); return 1; }
  if ! ask >"$WORK/next"; then
    # It may have been started anew and know nothing of us.
    told=''
    unheard=$((unheard + 1))
    return 1
  fi
  unheard=0
  follow_answer
}

tell() { # everything: once a minute, and when something was found that takes its time
  now
  found=$(echo "$WORK"/lldp.* "$WORK"/bmc*)
  if [ "$found" = "$told" ] && [ $((clock - told_at)) -lt 6000 ]; then return 0; fi
  post /discover "$(facts)" "$WORK/answer" || return 1
  answered=$(head -c 8192 "$WORK/answer" | sed -n 's/^id=\([a-z0-9-]*\)$/\1/p' | head -n 1)
  is_of 'a-z0-9-' 64 "$answered" || return 1
  if [ "$answered" != "$id" ]; then say "discover: this machine is $answered"; fi
  id=$answered told=$found told_at=$clock
}

ask() {
  servers_in_turn
  for server in $servers; do
    if timeout 10 wget -q -O "$WORK/answer" "$server/discover/next?id=$id" 2>/dev/null; then
      head -c 8192 "$WORK/answer"
      return 0
    fi
  done
  return 1
}

follow_answer() { # fails while there is nothing to do but wait
  wanted=$(sed -n 's/^wait=\([0-9]*\)$/\1/p' "$WORK/next" | head -n 1)
  if is_number "$wanted" && [ "$wanted" -ge 1 ] && [ "$wanted" -le 300 ]; then pause=$wanted; fi
  if grep -q '^reboot=1$' "$WORK/next"; then start_over 'the server says so'; fi
  grep -q '^muster\.node=' "$WORK/next" || return 1
  old_servers=$plan_servers old_mac=${plan_mac:-$mac}
  forget_plan
  if ! read_words <"$WORK/next"; then
    say "discover: $(cat "$WORK/wrong-word") of the server is not understood"
    forget_plan
    plan_mode=discover plan_servers=$old_servers plan_mac=$old_mac
    return 1
  fi
  plan_servers=${plan_servers:-$old_servers} plan_mac=${plan_mac:-$old_mac}
  say "discover: adopted as $plan_node"
  if [ "$plan_kernel" != "$(uname -r)" ]; then start_over "it needs kernel ${plan_kernel:-of its image}"; fi
  if [ -z "$plan_root" ]; then start_over 'its root comes another way'; fi
  require_plan 'in the answer of the server'
}

start_over() { # WHY
  say "discover: the machine starts over: $1"
  sync
  reboot -f
  # The kernel may take a moment.
  sleep 60
}
