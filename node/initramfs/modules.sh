# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# Drivers for the devices of this machine, and what the root needs, loaded at the same time.

load_modules() {
  modprobe -q -a loop squashfs overlay &
  root_modules=$!
  if [ "$plan_mode" = discover ]; then join_discovery_modules; fi
  # As people asked for them in the recipe: known to exist.
  xargs -r modprobe -a </lib/muster/modules || say 'modules: not all of kernel.modules could be loaded'
  modprobe -q -a virtio_net af_packet || :
  if [ -n "$plan_vlan" ]; then modprobe -q 8021q || :; fi
  # No device is called that: busybox takes an empty list for one that has everything.
  echo none >"$WORK/modaliases"
  # A driver can bring new devices, a bus behind a controller: looked at again until there are none.
  for round in 1 2 3 4; do
    device_names >"$WORK/modaliases.now"
    grep -vxF -f "$WORK/modaliases" "$WORK/modaliases.now" >"$WORK/modaliases.new" || break
    mv "$WORK/modaliases.now" "$WORK/modaliases"
    xargs -n 16 -P 4 modprobe -q -a <"$WORK/modaliases.new" 2>/dev/null || :
  done
  say "modules: $(wc -l <"$PROC/modules") loaded for $(wc -l <"$WORK/modaliases") kinds of devices in $round rounds"
}

device_names() { # what the kernel calls the kinds of devices it sees, for modprobe
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
      fail "kernel $(uname -r) has no file system $name" 'choose another kernel for the image, or the root ram as cpio'
  done
}
