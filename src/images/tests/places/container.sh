#!/bin/sh
# Boots a tree as a container, and takes away whatever it has made of it when it ends or is told to (TERM). It runs in a
# mount namespace of its own, so that mounts end with it; processes and cgroups do not, hence this script.
#   container.sh PARENT TREE WORK NOTIFY [OPTION FOR SYSTEMD-NSPAWN ...]
# What the container says about its start goes to the pipe NOTIFY, its console to standard output.
set -eu
parent=$1 tree=$2 work=$3 notify=$4
shift 4

cgroup=
reader=
end() {
  status=$?
  trap '' TERM INT HUP PIPE
  # Who read this may be gone.
  exec >/dev/null 2>&1
  [ -z "$reader" ] || kill -KILL "$reader" || :
  tries=0
  # What was killed may take a moment to be gone; what hangs in the kernel for ever we leave.
  while [ -n "$cgroup" ] && [ -d "$cgroup" ] && [ "$tries" -lt 400 ]; do
    find "$cgroup" -name cgroup.procs -exec cat {} + | while read -r pid; do
      kill -KILL "$pid" || :
    done
    find "$cgroup" -depth -type d -exec rmdir {} + || sleep 0.05
    tries=$((tries + 1))
  done
  trap - EXIT
  exit "$status"
}
# Not `exit`: a signal may come when it is about to end by itself, and end it before it has cleared away.
trap end EXIT TERM INT HUP PIPE
# It was ended before it could tell us so.
[ "$PPID" = "$parent" ] || exit 1

# Device nodes in the tree are not to be used: they would be this machine's.
cd "$work"
mkdir tree upper overlay root
mount --bind "$tree" tree
mount -t overlay -o lowerdir=tree,upperdir=upper,workdir=overlay,volatile,nodev muster root
# Systemd keeps a few files about containers here.
mkdir -p /run/systemd
mount -t tmpfs -o mode=755 muster /run/systemd
# One hierarchy for everybody, also where this machine has the many of old.
mount -t cgroup2 muster /sys/fs/cgroup
own=$(sed -n 's/^0:://p' /proc/self/cgroup)
cgroup=/sys/fs/cgroup${own%/}/muster-test-$parent-$$
mkdir "$cgroup"
echo "CGROUP=$cgroup" >"$notify"

socket=/run/systemd/muster
systemd-socket-activate --datagram --listen="$socket" --inetd sh -c 'exec cat >&2' 2>"$notify" &
reader=$!
# It listens when it says so, and the first to speak to it is the container.
while ! [ -S "$socket" ]; do
  kill -0 "$reader"
  sleep 0.01
done

(
  echo 0 >"$cgroup/cgroup.procs"
  # Whatever the tree holds: nspawn gives old ones a hierarchy of old, and leaves it behind.
  export NOTIFY_SOCKET="$socket" UNIFIED_CGROUP_HIERARCHY=1 SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
  exec systemd-nspawn --directory="$work/root" "$@"
) </dev/null &
wait $!
