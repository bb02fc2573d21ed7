# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# What this machine is to become, in words of the form muster.KEY=VALUE: on the kernel command line, or from a server to a
# machine that was discovered. Only these keys, and only values of this form, are taken.

forget_plan() {
  plan_node='' plan_boot='' plan_mac='' plan_servers='' plan_image='' plan_root='' plan_sha256='' plan_size=''
  plan_overlay=50% plan_kernel='' plan_shell='' plan_vlan='' plan_ip='' plan_mode='' plan_manifest='' plan_signature=''
  plan_enrol='' plan_ca=''
}

take_word() { # KEY VALUE: fails when the value is not what the key wants
  case $2 in
    '') return 0 ;;
    *[!A-Za-z0-9:/._,%+=@-]*) return 1 ;;
  esac
  case $1 in
    muster.node) is_of 'a-z0-9.-' 253 "$2" && plan_node=$2 ;;
    muster.boot) is_of 'a-z0-9-' 64 "$2" && plan_boot=$2 ;;
    muster.mac) is_mac "$2" && plan_mac=$2 ;;
    muster.servers) are_servers http:// "$2" && plan_servers=$2 ;;
    muster.enrol) are_servers https:// "$2" && plan_enrol=$2 ;;
    muster.ca) [ ${#2} -eq 64 ] && is_of 'a-f0-9' 64 "$2" && plan_ca=$2 ;;
    muster.image) is_of 'a-f0-9' 64 "${2#sha256:}" && plan_image=$2 ;;
    muster.root) [ "$2" = squashfs ] && plan_root=$2 ;;
    muster.sha256) [ ${#2} -eq 64 ] && is_of 'a-f0-9' 64 "$2" && plan_sha256=$2 ;;
    muster.size) is_number "$2" && plan_size=$2 ;;
    muster.manifest) is_number "$2" && [ "$2" -le 1048576 ] && plan_manifest=$2 ;;
    muster.signature) [ ${#2} -eq 100 ] && is_of 'A-Za-z0-9+/=' 100 "$2" && plan_signature=$2 ;;
    muster.overlay) { is_number "$2" || { is_number "${2%%%}" && [ "${2%%%}" -le 100 ]; }; } && plan_overlay=$2 ;;
    muster.kernel) is_of 'A-Za-z0-9._+~-' 128 "$2" && plan_kernel=$2 ;;
    muster.shell) is_of '01' 1 "$2" && plan_shell=$2 ;;
    muster.vlan) is_number "$2" && [ "$2" -ge 1 ] && [ "$2" -le 4094 ] && plan_vlan=$2 ;;
    muster.ip) is_static "$2" && plan_ip=$2 ;;
    muster.mode) [ "$2" = discover ] && plan_mode=$2 ;;
    *) say "plan: $1 is not known here and left out" ;;
  esac
}

read_words() { # takes every word of the input that is ours; fails at the first that is wrong
  set -f
  while read -r words || [ -n "$words" ]; do
    for word in $words; do
      case $word in muster.*=*) ;; *) continue ;; esac
      take_word "${word%%=*}" "${word#*=}" || {
        printf '%s\n' "$word" | printable >"$WORK/wrong-word"
        set +f
        return 1
      }
    done
  done
  set +f
}

read_command_line() {
  forget_plan
  read_words <"$PROC/cmdline" ||
    fail "$(cat "$WORK/wrong-word") on the kernel command line is not understood" 'look at: muster boot script NODE'
  if [ "$plan_shell" = 1 ]; then : >"$WORK/shell-allowed"; fi
  require_plan 'on the kernel command line'
  say "plan: ${plan_node:-a machine nobody knows}, boot ${plan_boot:-without id}, servers $plan_servers"
}

require_plan() { # WHERE
  [ -n "$plan_servers" ] || fail "there is no muster.servers $1" 'look at: muster boot script NODE'
  if [ "$plan_mode" = discover ]; then return 0; fi
  for pair in "root=$plan_root" "sha256=$plan_sha256" "size=$plan_size"; do
    [ -n "${pair#*=}" ] || fail "there is no muster.${pair%%=*} $1" 'look at: muster boot script NODE'
  done
}

print_plan() { # as it came, for the running system
  for line in "node=$plan_node" "boot=$plan_boot" "mac=$plan_mac" "servers=$plan_servers" "image=$plan_image" \
    "root=$plan_root" "sha256=$plan_sha256" "size=$plan_size" "overlay=$plan_overlay" "kernel=$plan_kernel" \
    "shell=$plan_shell" "vlan=$plan_vlan" "ip=$plan_ip" "enrol=$plan_enrol" "ca=$plan_ca"; do
    if [ -n "${line#*=}" ]; then echo "muster.$line"; fi
  done
}

is_of() { # CHARACTERS MOST TEXT
  [ -n "$3" ] && [ ${#3} -le "$2" ] || return 1
  # shellcheck disable=SC2254 # the characters are a class
  case $3 in *[!$1]*) return 1 ;; esac
}

is_number() { # TEXT: without leading zeros, small enough for every shell
  is_of '0-9' 15 "$1" || return 1
  case $1 in 0?*) return 1 ;; esac
}

is_mac() {
  is_of '0-9a-f:' 17 "$1" || return 1
  case $1 in ??:??:??:??:??:??) ;; *) return 1 ;; esac
  case $1 in *::* | :* | *:) return 1 ;; esac
}

is_ipv4() {
  is_of '0-9.' 15 "$1" || return 1
  case $1 in *.*.*.*.* | .* | *. | *..*) return 1 ;; *.*.*.*) ;; *) return 1 ;; esac
  octets=$1.
  while [ -n "$octets" ]; do
    is_number "${octets%%.*}" && [ "${octets%%.*}" -le 255 ] || return 1
    octets=${octets#*.}
  done
}

is_static() { # ADDRESS/PREFIX[,GATEWAY]
  case $1 in */*) ;; *) return 1 ;; esac
  static_rest=${1#*/}
  is_ipv4 "${1%%/*}" && is_number "${static_rest%%,*}" && [ "${static_rest%%,*}" -le 32 ] || return 1
  case $static_rest in *,*) is_ipv4 "${static_rest#*,}" ;; esac
}

are_servers() { # SCHEME URL[,URL…]
  rest=$2,
  while [ -n "$rest" ]; do
    case ${rest%%,*} in "$1"*) ;; *) return 1 ;; esac
    host=${rest#"$1"}
    is_of 'A-Za-z0-9:/._-' 200 "${host%%,*}" || return 1
    rest=${rest#*,}
  done
}
