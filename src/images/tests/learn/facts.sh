#!/bin/sh
# Says what a system is like: one fact a line, its fields divided by tabs. Only says; facts.ts reads, learn.ts chooses.
#   sh -s PLACE    root: a tree that nobody booted; running: a machine
# It is fed to a shell that may have next to nothing beside it, so what the shell can do itself it does.
set -u
export LC_ALL=C

# Whole before any of it runs: half a script that arrived does nothing, and no command eats the rest.
main() {
  place=$1
  tab=$(printf '\t')
  echo 'muster-facts 1'
  system
  packages
  services
  accounts
  settings
  files
  [ "$place" != running ] || sockets
  echo 'end'
}

has() { command -v "$1" >/dev/null 2>&1; }
say() {
  line=$1
  shift
  for field; do line=$line$tab$field; done
  printf '%s\n' "$line"
}

system() {
  [ -r /etc/os-release ] || return 0
  while IFS= read -r line; do
    case $line in PRETTY_NAME=*) say system "${line#PRETTY_NAME=}" ;; esac
  done </etc/os-release
}

# The package manager is the one whose database there is, and its tool must be there: with it the checks will ask.
packages() {
  if [ -e /var/lib/dpkg/status ]; then
    has dpkg-query || { say lacks dpkg-query; return 0; }
    dpkg-query -W -f '${db:Status-Status}\t${Package}\t${Version}\t${Priority}\t${Section}\n' 2>/dev/null |
      while IFS=$tab read -r status name version priority section; do
        [ "$status" != installed ] || say package "$name" "$version" "${priority:--}" "${section:--}"
      done
    if has apt-mark; then say manager apt-mark; apt-mark showmanual 2>/dev/null | asked
    else say manager dpkg; fi
  elif [ -e /lib/apk/db/installed ] || [ -e /usr/lib/apk/db/installed ]; then
    for db in /usr/lib/apk/db/installed /lib/apk/db/installed; do
      [ ! -e "$db" ] || found=$db
    done
    while IFS= read -r line; do
      case $line in P:*) name=${line#P:} ;; V:*) say package "$name" "${line#V:}" - - ;; esac
    done <"$found"
    say manager apk
    [ ! -r /etc/apk/world ] || asked </etc/apk/world
  elif [ -d /var/lib/rpm ] || [ -d /usr/lib/sysimage/rpm ] || [ -d /usr/share/rpm ]; then
    has rpm || { say lacks rpm; return 0; }
    rpm -qa --nosignature --nodigest --qf 'package\t%{NAME}\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\t-\t-\n' 2>/dev/null
    by_hand=
    if has dnf; then by_hand=$(dnf -q --disablerepo='*' repoquery --userinstalled --qf '%{name}\n' 2>/dev/null) || by_hand=; fi
    if [ -n "$by_hand" ]; then
      say manager dnf
      printf '%s\n' "$by_hand" | asked
    elif [ -s /var/lib/zypp/AutoInstalled ]; then
      say manager zypper
      while IFS= read -r line; do
        case $line in '' | '#'*) ;; *) say automatic "$line" ;; esac
      done </var/lib/zypp/AutoInstalled
    else say manager rpm; fi
  fi
}
asked() {
  while IFS= read -r line || [ -n "$line" ]; do
    [ -z "$line" ] || say asked "$line"
  done
}

services() {
  if has systemctl; then
    at=
    [ "$place" != root ] || at=--root=/
    # shellcheck disable=SC2086 # an option, or none
    systemctl $at --no-legend --no-pager --full --type=service,socket --state=enabled list-unit-files 2>/dev/null |
      while read -r unit _; do say enabled "$unit"; done
    [ "$place" = running ] || return 0
    systemctl --no-legend --no-pager --full --plain --type=service --state=running list-units 2>/dev/null |
      while read -r unit _; do
        # What starts on hardware only would not run where the checks do, in a container.
        case $(systemctl cat -- "$unit" 2>/dev/null) in
          *ConditionVirtualization=*) ;;
          *) say active "$unit" ;;
        esac
      done
  else
    for link in /etc/runlevels/*/* /etc/rc[2345S].d/S[0-9][0-9]*; do
      [ -e "$link" ] || [ -L "$link" ] || continue
      name=${link##*/}
      case $link in /etc/rc*.d/*) name=${name#S[0-9][0-9]} ;; esac
      say enabled "$name"
    done
  fi
}

# Neither passwords nor what people are called.
accounts() {
  if [ -r /etc/passwd ]; then
    while IFS=: read -r name _ uid gid _ home shell; do
      case $name in '' | '#'* | '+'* | '-'*) ;; *) say user "$name" "$uid" "$gid" "$home" "$shell" ;; esac
    done </etc/passwd
  fi
  if [ -r /etc/group ]; then
    while IFS=: read -r name _ gid members; do
      case $name in '' | '#'* | '+'* | '-'*) ;; *) say group "$name" "$gid" "$members" ;; esac
    done </etc/group
  fi
}

# Lines that say something, in files that people write.
settings() {
  lines fstab /etc/fstab
  for file in /etc/sysctl.d/*.conf; do [ -L "$file" ] || lines sysctl "$file"; done
  lines sysctl /etc/sysctl.conf
  lines locale /etc/locale.conf
  lines locale /etc/default/locale
}
lines() {
  if ! [ -f "$2" ] || ! [ -r "$2" ]; then return 0; fi
  # Blanks at both ends go.
  # shellcheck disable=SC2094 # its name is said, nothing is written to it
  while read -r line || [ -n "$line" ]; do
    case $line in '' | '#'* | ';'*) continue ;; esac
    say "$1" "$2" "$line"
  done <"$2"
}

files() {
  if has readlink && [ -L /etc/localtime ]; then say link /etc/localtime "$(readlink /etc/localtime)"; fi
  has stat || { say lacks stat; return 0; }
  for path in /etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/sshd_config /root; do
    [ ! -e "$path" ] || status file "$path"
  done
  has find || { say lacks find; return 0; }
  for dir in /bin /sbin /usr /opt; do
    if [ -d "$dir" ] && ! [ -L "$dir" ]; then find "$dir" -xdev -type f -perm -4000 2>/dev/null; fi
  done |
    while IFS= read -r path; do status setuid "$path"; done
}
status() {
  # shellcheck disable=SC2046 # five words
  set -- "$1" "$2" $(stat -c '%f %u %g %U %G' "$2" 2>/dev/null)
  [ $# -ne 7 ] || say "$@"
}

# TCP_LISTEN and, for sockets of UDP that are connected to nobody, TCP_CLOSE.
sockets() {
  for protocol in tcp tcp6 udp udp6; do
    [ -r "/proc/net/$protocol" ] || continue
    case $protocol in tcp*) listening=0A ;; *) listening=07 ;; esac
    while read -r _ local _ state _; do
      [ "$state" != "$listening" ] || say socket "$protocol" "$local"
    done <"/proc/net/$protocol"
  done
}

main "$@" </dev/null
