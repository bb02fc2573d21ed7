#!/bin/sh
# Installs the agent, has it started by whatever init the image has, and sees to it that there is a network to speak over.
set -eu

put() { # FILE TARGET MODE
  mkdir -p "${2%/*}"
  cp "$1" "$2"
  chmod "$3" "$2"
}

wanted() { # UNIT TARGET: as systemctl enable would
  mkdir -p "/etc/systemd/system/$2.wants"
  ln -sf "$1" "/etc/systemd/system/$2.wants/${1##*/}"
}

put muster-agent /usr/lib/muster/muster-agent 755
put muster-files /usr/lib/muster/muster-files 755
mkdir -p /usr/lib/muster/health.d /etc/muster/health.d
if [ -d /etc/systemd ] || [ -d /lib/systemd ] || [ -d /usr/lib/systemd ]; then
  put muster-agent.service /etc/systemd/system/muster-agent.service 644
  wanted ../muster-agent.service multi-user.target
  # Whoever brought another way to set up the network meant it.
  if ! [ -e /usr/sbin/NetworkManager ] && ! [ -e /sbin/ifup ] && ! [ -e /usr/sbin/wicked ]; then
    for unit in /usr/lib/systemd/system/systemd-networkd.service /lib/systemd/system/systemd-networkd.service; do
      [ -e "$unit" ] || continue
      put muster.network /etc/systemd/network/80-muster.network 644
      wanted "$unit" multi-user.target
      break
    done
  fi
elif [ -d /etc/init.d ]; then
  put muster-agent.init /etc/init.d/muster-agent 755
  if [ -d /etc/runlevels ]; then
    mkdir -p /etc/runlevels/default
    ln -sf /etc/init.d/muster-agent /etc/runlevels/default/muster-agent
  fi
fi
