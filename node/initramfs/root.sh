# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# The image, read-only, under a layer in memory that takes all changes.

mount_root() {
  require_file_systems squashfs overlay
  [ -e /dev/loop-control ] ||
    fail "kernel $(uname -r) has no loop devices" 'choose another kernel for the image, or its root as cpio'
  unmount_root
  mkdir -p /lower /upper /newroot
  mount -t squashfs -o ro,loop "$IMAGE/$plan_sha256" /lower ||
    fail "the image cannot be mounted: $(dmesg | tail -n 1 | cut -c 1-150)" 'build the image again, or choose another kernel'
  mount -t tmpfs -o "mode=0755,size=$plan_overlay" tmpfs /upper
  mkdir -m "$(stat -c %a /lower)" /upper/changes
  mkdir /upper/work
  mount -t overlay -o lowerdir=/lower,upperdir=/upper/changes,workdir=/upper/work overlay /newroot ||
    fail "the layer for changes cannot be mounted: $(dmesg | tail -n 1 | cut -c 1-150)" 'choose another kernel'
  find_init /newroot >"$WORK/init" ||
    fail 'the image has no /sbin/init that can be run' 'add systemd or another init to the packages of its recipe'
  for dir in proc sys dev run; do mkdir -p "/newroot/$dir"; done
  name_host /newroot
  print_plan >"$RUN/boot"
  say "root: $plan_image is mounted, up to $plan_overlay of the memory takes changes"
}

unmount_root() { # of an attempt before
  for dir in /newroot /upper /lower; do
    if grep -q " $dir " "$PROC/mounts"; then umount "$dir"; fi
  done
}

find_init() { # ROOT: prints where it is
  for init in /sbin/init /usr/lib/systemd/systemd /lib/systemd/systemd /init; do
    if [ -x "$1$(resolve "$1" "$init")" ]; then
      echo "$init"
      return 0
    fi
  done
  return 1
}

resolve() { # ROOT PATH: the path with links followed, inside the root
  done='' todo=${2#/}/ hops=0
  while [ -n "$todo" ]; do
    part=${todo%%/*}
    todo=${todo#*/}
    case $part in
      '' | .) continue ;;
      ..) done=${done%/*}; continue ;;
    esac
    if [ -h "$1$done/$part" ] && [ "$hops" -lt 40 ]; then
      target=$(readlink "$1$done/$part")
      hops=$((hops + 1))
      case $target in /*) done='' ;; esac
      todo=$target/$todo
    else
      done=$done/$part
    fi
  done
  echo "$done"
}

name_host() { # ROOT: also for a machine whose command line did not know its name yet
  if [ -z "$plan_node" ] || [ -h "$1/etc/hostname" ] || ! [ -d "$1/etc" ]; then return 0; fi
  echo "$plan_node" >"$1/etc/hostname"
  echo "$plan_node" >"$PROC/sys/kernel/hostname"
}
