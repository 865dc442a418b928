#!/bin/sh
# This guard denies shell commands that are hard to undo.
#
# Try it:     tenterhook test
# Use it:     tenterhook trust
#
# It reads the command line as text, so it cannot see what a script, an alias, a variable or another
# language does: `./cleanup.sh`, `$CMD`, `python3 -c '...'`. It also denies lines that only mention such
# a command. A guard in Python or TypeScript is more exact: `tenterhook init --lang py`.

# Tenterhook asks once which event this file is for. `tool_guard` sees each tool call as it would run,
# after all changes by other hooks.
if [ "$1" = hook ]; then
  echo tool_guard
  exit
fi

# A guard that cannot work must not let everything through. Any exit status but 0 denies the call.
for program in grep sed tr; do
  command -v "$program" > /dev/null || { echo "$program is missing" >&2; exit 1; }
done

event=$(cat)
case "$event" in
  *'"tool_name":"shell"'*) ;;
  *) exit 0 ;; # another tool
esac

deny() {
  printf '{"decision":"deny","reason":"%s"}\n' "$1"
  exit 0
}

# The command line out of the JSON, where Tenterhook writes `\u` and four digits for a special character.
# A backslash with a line break, quotes and backslashes are dropped, as a shell does it. A line break and
# `&` become `;`, which also stands between commands. `<`, `>` and all other special characters become
# spaces. `{rm,-rf}` and `-{r,f}` become `rm -rf` and `-rf`, as a shell expands them.
line=$(printf '%s' "$event" | grep -Eo '"cmd":"[^"]*"' | tr -d "\"'" | sed -e 's/^cmd://' \
  -e 's/\\u005c\\u000a//g' -e 's/\\u0022//g' -e 's/\\u005c//g' \
  -e 's/\\u003c/</g' -e 's/\\u003e/>/g' -e 's/\\u0026/\&/g' -e 's/[&|]*[<>][<>&|]*/ /g' \
  -e 's/,-/ -/g' -e 's/[{},]//g' \
  -e 's/\\u000[ad]/;/g' -e 's/&/;/g' -e 's/\\u[0-9a-f]\{4\}/ /g')
[ -n "$line" ] || { echo "the event has no command line" >&2; exit 1; }

# Prints every command of the line that begins with a program: `calls rm`.
calls() {
  printf '%s\n' "$line" | grep -Eo "(^|[^[:alnum:]_.-])$1[[:space:]][^;&|]*"
}

# Says whether a command has an option: one of its letters, alone or as in `-rf`, or its name.
with() {
  grep -E -- "[[:space:]](-[[:alnum:]]*[$1]|$2([^[:alnum:]-]|\$))"
}

# `rm` also takes the beginning of a name: `--rec`.
if calls rm | with rR '--r[a-z]*' | with f '--f[a-z]*' | grep -q .; then
  deny '`rm -rf` is not allowed here'
fi
if calls git | grep -E '[[:space:]]push' | with f --force | grep -q .; then
  deny 'a forced push is not allowed here'
fi
if calls git | grep -Eq '[[:space:]]push.*[[:space:]]\+'; then
  deny 'a forced push is not allowed here'
fi
