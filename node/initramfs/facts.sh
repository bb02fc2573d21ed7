# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# What a machine can say about itself, as JSON.

facts() {
  printf '{"boot":%s,"mac":%s,"macs":[%s],"lldp":[%s]' "$(json_string "$plan_boot")" "$(json_string "$mac")" \
    "$(joined interface_facts)" "$(joined lldp_facts)"
  for pair in uuid=product_uuid serial=product_serial vendor=sys_vendor product=product_name; do
    printf ',"%s":%s' "${pair%%=*}" "$(json_line "$SYS/class/dmi/id/${pair#*=}")"
  done
  printf ',"cpu":{"model":%s,"count":%d},"memory":%d,"disks":[%s]%s}' \
    "$(json_string "$(sed -n 's/^model name[[:space:]]*: //p' "$PROC/cpuinfo" | head -n 1)")" \
    "$(grep -c '^processor' "$PROC/cpuinfo" || :)" \
    $(($(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' "$PROC/meminfo") * 1024)) "$(joined disk_facts)" "$(bmc_facts)"
}

joined() { # COMMAND: its lines with commas between them
  "$1" | sed '$!s/$/,/' | tr -d '\n'
}

interface_facts() {
  for name in $(interfaces); do
    dir=$SYS/class/net/$name
    read_line "$dir/speed"
    speed=$line
    link=false
    if has_link "$name"; then link=true; fi
    printf '{"name":%s,"mac":%s,"link":%s' "$(json_string "$name")" "$(json_line "$dir/address")" "$link"
    if is_number "$speed" && [ "$speed" -gt 0 ]; then printf ',"speed":%d' "$speed"; fi
    printf '}\n'
  done
}

lldp_facts() {
  for path in "$WORK"/lldp.*; do
    read_line "$path"
    if is_of '0-9a-f' 4000 "$line"; then
      printf '{"interface":%s,"frame":"%s"}\n' "$(json_string "${path##*/lldp.}")" "$line"
    fi
  done
}

json_line() { # FILE: its first line as a JSON string
  read_line "$1"
  json_string "$line"
}

disk_facts() {
  for dir in "$SYS"/block/*; do
    case ${dir##*/} in loop* | ram* | zram* | dm-* | md* | sr* | fd* | nbd* | '*') continue ;; esac
    read_line "$dir/size"
    if ! is_number "$line"; then continue; fi
    printf '{"name":%s,"size":%d,"model":%s}\n' "$(json_string "${dir##*/}")" $((line * 512)) \
      "$(json_line "$dir/device/model")"
  done
}

bmc_facts() {
  address=$(sed -n 's/^IP Address  *: \([0-9.]*\)$/\1/p' "$WORK/bmc" 2>/dev/null || :)
  bmc_mac=$(sed -n 's/^MAC Address  *: \([0-9a-f:]*\)$/\1/p' "$WORK/bmc" 2>/dev/null || :)
  if is_ipv4 "$address" && is_mac "$bmc_mac"; then
    printf ',"bmc":{"address":"%s","mac":"%s"}' "$address" "$bmc_mac"
  fi
}

look_for_neighbours() { # in the background: switches say who they are every 30 seconds
  command -v tcpdump >/dev/null || return 0
  for name in $(interfaces); do
    ip link set dev "$name" up || :
    {
      timeout 35 tcpdump -i "$name" -Z root -n -U -c 1 -w - ether proto 0x88cc 2>/dev/null | head -c 2000 | frame_of_pcap \
        >"$WORK/found.$name" || :
      if [ -s "$WORK/found.$name" ]; then mv "$WORK/found.$name" "$WORK/lldp.$name"; fi
    } &
  done
}

frame_of_pcap() { # the first frame in hex: behind the headers of the file (24 bytes) and of the frame (16)
  od -An -v -tx1 | tr -d ' \n' | cut -c 81-
}

look_for_bmc() { # in the background: some take their time
  {
    modprobe -q -a ipmi_si ipmi_devintf || :
    if command -v ipmitool >/dev/null && [ -e /dev/ipmi0 ]; then
      timeout 30 ipmitool lan print >"$WORK/bmc.new" 2>/dev/null || :
      mv "$WORK/bmc.new" "$WORK/bmc"
    fi
  } &
}
