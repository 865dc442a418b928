#!/bin/sh
# This guard keeps the file tools of agents away from files with secrets.
#
# Try it:     tenterhook test
# Use it:     {use}
#
# It judges only paths. Deny commands with `deny_commands` in a hook file, which `tenterhook init` writes: a
# command line has too many spellings to be judged as text, such as `cat .e*` and `sh -c 'cat .env'`.

# Tenterhook asks once which event this file is for. `tool_guard` sees each tool call as it would run,
# after all changes by other hooks.
if [ "$1" = hook ]; then
  echo tool_guard
  exit
fi

event=$(cat)
case "$event" in
  *'"tool_name":"read_file"'* | *'"tool_name":"write_file"'*) ;;
  *'"tool_name":"edit_file"'* | *'"tool_name":"delete_file"'*) ;;
  *) exit 0 ;; # another tool
esac

# Any exit status but 0 denies the call.
fail() {
  echo "$1" >&2
  exit 1
}

is_secret() {
  case "$(printf '%s' "${1##*/}" | tr '[:upper:]' '[:lower:]')" in
    .env.example) return 1 ;;
    .env | .env.* | *.pem | *.key) return 0 ;;
    *) return 1 ;;
  esac
}

for program in grep head readlink tr; do
  command -v "$program" > /dev/null || fail "$program is missing"
done
# Tenterhook writes quotes inside of texts as `\u0022`, so these are keys of the event and nothing else.
path=$(printf '%s' "$event" | grep -o '"tool_input":{.*' | grep -o '"path":"[^"]*"' | head -n 1)
[ -n "$path" ] || fail 'the call has no path'
path=${path#'"path":"'}
path=${path%'"'}

# A link can have any name, so the name of the file behind it counts as well.
if is_secret "$path" || is_secret "$(readlink -f -- "$path" || echo "$path")"; then
  echo '{"decision":"deny","reason":"files with secrets are not allowed here"}'
fi
