# shellcheck shell=sh disable=SC2034,SC2154 # names of the files beside this one
# The files that the site gives this node are in place before the first program of its system runs. Who fetches them is the agent
# of the image, in its own root: it has a TLS that checks certificates, which busybox has not.
AUTHORITY=${AUTHORITY-/etc/muster/ca}
FILES=usr/lib/muster/muster-files

get_files() {
  if [ -z "$plan_enrol" ]; then return 0; fi
  # What came with this initramfs was signed with it, and counts more than what the command line says.
  read_line "$AUTHORITY"
  if [ -n "$line" ] && [ "$line" != "$plan_ca" ]; then
    fail "the boot server names another certificate of the site than this image: $plan_ca instead of $line" \
      'look at: muster ca show, and trust.ca in site.yaml'
  fi
  if ! [ -x "/newroot/$FILES" ]; then
    say 'files: the image has no agent that could fetch them'
    return 0
  fi
  for dir in proc dev run; do mount -o bind "/$dir" "/newroot/$dir"; done
  say "files: from $plan_enrol"
  got=0
  chroot /newroot "/$FILES" boot >&2 || got=$?
  for dir in proc dev run; do umount "/newroot/$dir"; done
  if [ "$got" -eq 0 ]; then return 0; fi
  read_line "$RUN/files.problem"
  fail "files: ${line:-the agent of the image ended with status $got}" 'look at: muster files show NODE'
}
