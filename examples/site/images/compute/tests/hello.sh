#!/bin/sh
# Compiles and runs a program as an ordinary user would, with a module loaded. Prints TAP. Starts in the folder of the tests.
echo 1..2
. /etc/profile.d/modules.sh
if module avail 2>&1 | grep -q .; then echo 'ok 1 - modules are there'; else echo 'not ok 1 - modules are there'; fi
tests=$PWD
cd "$(mktemp -d)" || exit 1
if cc -o hello "$tests/hello.c" && [ "$(./hello)" = 'hello from a node' ]; then
  echo 'ok 2 - a C program compiles and runs'
else
  echo 'not ok 2 - a C program compiles and runs'
fi
