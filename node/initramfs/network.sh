# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# The interface this machine booted from gets its link, its VLAN and its address.

interfaces() { # those with hardware behind them
  for path in "$SYS"/class/net/*; do if [ -e "$path/device" ]; then echo "${path##*/}"; fi; done
}

interface_with_mac() { # MAC: its name in $interface
  for interface in $(interfaces); do
    read_line "$SYS/class/net/$interface/address"
    if [ "$line" = "$1" ]; then return 0; fi
  done
  return 1
}

has_link() { # INTERFACE
  read_line "$SYS/class/net/$1/carrier"
  [ "$line" = 1 ]
}

interface_with_link() { # its name in $interface
  for interface in $(interfaces); do
    ip link set dev "$interface" up || :
    if has_link "$interface"; then return 0; fi
  done
  return 1
}

choose_interface() { # its name in $interface
  if [ -n "$plan_mac" ]; then
    if wait_for 10 interface_with_mac "$plan_mac"; then return 0; fi
    say "network: no interface has MAC $plan_mac; the first with a link is taken"
  fi
  wait_for 20 interface_with_link && return 0
  [ -n "$(interfaces)" ] ||
    fail 'this machine has no network interface that the kernel knows' \
      'name its driver in the recipe: kernel: { modules: [...] }'
  fail "no network interface has a link ($(interfaces | tr '\n' ' ')seen)" 'look at the cable and the port of the switch'
}

start_network() {
  stop_network
  choose_interface
  read_line "$SYS/class/net/$interface/address"
  mac=$line
  ip link set dev "$interface" up
  wait_for 20 has_link "$interface" ||
    fail "interface $interface ($mac) has no link" 'look at the cable and the port of the switch'
  if [ -n "$plan_vlan" ]; then start_vlan; fi
  if [ -n "$plan_ip" ]; then use_static_address; else ask_for_address; fi
  echo "$mac" >"$WORK/online"
  say "network: $interface ($mac) has $(cat "$WORK/address")"
}

start_vlan() {
  vlan=vlan$plan_vlan
  ip link show dev "$vlan" >/dev/null 2>&1 || ip link add link "$interface" name "$vlan" type vlan id "$plan_vlan" ||
    fail "VLAN $plan_vlan on $interface cannot be made" 'has the kernel the module 8021q?'
  ip link set dev "$vlan" up
  interface=$vlan
}

use_static_address() {
  ip addr replace "${plan_ip%%,*}" dev "$interface"
  case $plan_ip in *,*) ip route replace default via "${plan_ip#*,}" dev "$interface" ;; esac
  echo "${plan_ip%%,*}" >"$WORK/address"
}

ask_for_address() {
  say "network: asking for an address on $interface ($mac)"
  # It stays to renew the lease: a machine may be discovered for days. No name and no vendor: only an address is wanted.
  udhcpc -i "$interface" -n -t 6 -T 3 -V '' -O mtu -s /lib/muster/udhcpc -p "$WORK/udhcpc.pid" >>"$RUN/log" 2>&1 ||
    fail "no DHCP server gave $interface ($mac) an address" \
      'is the machine in the network of the boot server, and is that running?'
}

stop_network() { # as it was found: whoever comes next may want other names and addresses
  rm -f "$WORK/online"
  if [ -s "$WORK/udhcpc.pid" ]; then kill "$(cat "$WORK/udhcpc.pid")" 2>/dev/null || :; fi
  rm -f "$WORK/udhcpc.pid"
  for path in "$SYS"/class/net/vlan*; do if [ -e "$path" ]; then ip link del dev "${path##*/}" || :; fi; done
  for name in $(interfaces); do
    ip addr flush dev "$name" || :
    ip link set dev "$name" down || :
  done
}
