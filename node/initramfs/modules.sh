# shellcheck shell=sh disable=SC2154 # names of the files beside this one
# Drivers for the devices of this machine, and what the root needs, loaded at the same time.

load_modules() {
  modprobe -q -a loop squashfs overlay &
  root_modules=$!
  if [ "$plan_mode" = discover ]; then join_discovery_modules; fi
  if [ -s /lib/muster/modules ]; then
    xargs modprobe -a </lib/muster/modules || say 'modules: not all of kernel.modules could be loaded'
  fi
  if [ -n "$plan_vlan" ]; then modprobe -q 8021q || :; fi
  # No device is called that: busybox takes an empty list for one that has everything.
  echo none >"$WORK/kinds"
  # A driver can bring new devices, a bus behind a controller: looked at again until there are none.
  for round in 1 2 3 4; do
    device_kinds >"$WORK/kinds.now"
    grep -vxF -f "$WORK/kinds" "$WORK/kinds.now" >"$WORK/kinds.new" || break
    mv "$WORK/kinds.now" "$WORK/kinds"
    xargs -n 16 -P 4 modprobe -q -a virtio_net <"$WORK/kinds.new" 2>/dev/null || :
  done
  say "modules: $(wc -l <"$PROC/modules") loaded for $(wc -l <"$WORK/kinds") kinds of devices in $round rounds"
}

device_kinds() { # as the kernel calls those it sees, and modprobe knows them
  cat "$SYS"/bus/*/devices/*/modalias 2>/dev/null | grep -v "[[:space:]\"'\\]" | sort -u
}

join_discovery_modules() { # drivers of disks and of the BMC: only a machine that is looked at needs them
  lists=/lib/modules/$(uname -r)
  if [ -e "$lists/modules.alias.discover" ]; then
    cat "$lists/modules.alias.discover" >>"$lists/modules.alias"
    rm "$lists/modules.alias.discover"
  fi
}

require_file_systems() { # NAME…
  wait "$root_modules" || :
  for name in "$@"; do
    grep -qw "$name" "$PROC/filesystems" ||
      fail "kernel $(uname -r) has no file system $name" 'choose another kernel for the image, or its root as cpio'
  done
}
