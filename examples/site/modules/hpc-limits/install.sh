#!/bin/sh
# Works in any root: it only writes a file.
set -eu
mkdir -p /etc/security/limits.d
cat >/etc/security/limits.d/60-hpc.conf <<'END'
*  soft  memlock  unlimited
*  hard  memlock  unlimited
*  soft  stack    unlimited
*  soft  nofile   65536
*  hard  nofile   1048576
END
