#!/bin/sh
# Installs the agent, and has it started by whatever init the image has.
set -eu
install -D -m 755 muster-agent /usr/lib/muster/muster-agent
if [ -d /etc/systemd ] || [ -d /lib/systemd ] || [ -d /usr/lib/systemd ]; then
  install -D -m 644 muster-agent.service /etc/systemd/system/muster-agent.service
  mkdir -p /etc/systemd/system/multi-user.target.wants
  ln -sf ../muster-agent.service /etc/systemd/system/multi-user.target.wants/muster-agent.service
elif [ -d /etc/init.d ]; then
  install -D -m 755 muster-agent.init /etc/init.d/muster-agent
  if [ -d /etc/runlevels ]; then
    mkdir -p /etc/runlevels/default
    ln -sf /etc/init.d/muster-agent /etc/runlevels/default/muster-agent
  fi
fi
