#!/bin/sh
set -eu
mkdir -p /opt/modulefiles /etc/environment-modules
touch /etc/environment-modules/modulespath
grep -qx /opt/modulefiles /etc/environment-modules/modulespath ||
  echo /opt/modulefiles >>/etc/environment-modules/modulespath
