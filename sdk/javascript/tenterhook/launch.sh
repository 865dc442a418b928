#!/bin/sh
# Runs the program from the package for this platform. It replaces this shell, so arguments, signals
# and the exit status are handled by the program itself, and hooks do not wait for Node.js to start.

# The exit status that hosts of gates read as "deny": a guard that cannot run must not let anything
# through.
denied=2

# npm creates a link to this file. The other packages are next to the file itself.
file=$0
case $file in
  */*) ;;
  *) file=./$file ;;
esac
while [ -L "$file" ]; do
  target=$(readlink "$file")
  case $target in
    /*) file=$target ;;
    *) file=${file%/*}/$target ;;
  esac
done
folder=$(cd "${file%/*}" && pwd -P) || exit "$denied"

case $(uname -sm) in
  'Linux x86_64' | 'Linux amd64') names='linux-x64 linux-x64-musl' ;;
  'Linux aarch64' | 'Linux arm64') names='linux-arm64 linux-arm64-musl' ;;
  'Darwin x86_64') names=darwin-x64 ;;
  'Darwin arm64') names=darwin-arm64 ;;
  *)
    echo "error: there is no package with the program for \`$(uname -sm)\`" >&2
    echo 'hint: build the program in a checkout of Tenterhook: `cargo install --locked --path crates/cli`' >&2
    exit "$denied"
    ;;
esac
# A version of npm that does not check the C library of packages installs both.
set_musl_first() {
  if [ -e "$1" ]; then names="${names#* } ${names%% *}"; fi
}
set_musl_first /lib/ld-musl-*

for name in $names; do
  above=$folder
  while [ -n "$above" ]; do
    program=$above/node_modules/@tenterhook/$name/bin/tenterhook
    if [ -f "$program" ]; then
      # A program for another machine, or one that is not executable, fails to start. dash then
      # exits with a status of its own, but runs this trap first. bash continues if `execfail` is
      # set.
      trap 'exit "$denied"' EXIT
      # shellcheck disable=SC3044
      shopt -s execfail 2>/dev/null
      exec "$program" "$@"
      exit "$denied"
    fi
    above=${above%/*}
  done
done

echo "error: the package \`@tenterhook/${names%% *}\`, which carries the program, is not installed" >&2
echo 'hint: install `tenterhook` again without `--omit=optional`' >&2
exit "$denied"
