#!/bin/sh
# Installs the agent, and has it started by whatever init the image has.
set -eu

put() { # FILE TARGET MODE
  mkdir -p "${2%/*}"
  cp "$1" "$2"
  chmod "$3" "$2"
}

put muster-agent /usr/lib/muster/muster-agent 755
if [ -d /etc/systemd ] || [ -d /lib/systemd ] || [ -d /usr/lib/systemd ]; then
  put muster-agent.service /etc/systemd/system/muster-agent.service 644
  mkdir -p /etc/systemd/system/multi-user.target.wants
  ln -sf ../muster-agent.service /etc/systemd/system/multi-user.target.wants/muster-agent.service
elif [ -d /etc/init.d ]; then
  put muster-agent.init /etc/init.d/muster-agent 755
  if [ -d /etc/runlevels ]; then
    mkdir -p /etc/runlevels/default
    ln -sf /etc/init.d/muster-agent /etc/runlevels/default/muster-agent
  fi
fi
