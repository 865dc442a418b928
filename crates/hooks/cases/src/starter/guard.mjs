// This guard keeps the file tools of agents away from files with secrets.
//
// Try it:     tenterhook test
// Use it:     {use}
//
// It judges only paths. Deny commands with `deny_commands` in a hook file, which `tenterhook init` writes: a
// command line has too many spellings to be judged as text, such as `cat .e*` and `sh -c 'cat .env'`.

import { readlinkSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { deny, on } from 'tenterhook';

const tools = 'read_file|write_file|edit_file|delete_file';

// `tool_guard` sees each tool call as it would run, after all changes by other hooks. If the guard fails, for
// example because a call has no path, the call is denied.
on('tool_guard', { matcher: tools }, function guard(event) {
  // A link can have any name, so the name of the file behind it counts as well.
  if ([...follow(resolve(event.cwd, event.tool_input.path))].some(isSecret)) {
    return deny('files with secrets are not allowed here');
  }
});

function isSecret(path) {
  const name = basename(path).toLowerCase();
  if (name === '.env.example') return false;
  return name === '.env' || name.startsWith('.env.') || /\.(pem|key)$/.test(name);
}

/** Returns the path and, if it is a link, what it leads to. */
function* follow(path) {
  for (let links = 0; links < 40; links += 1) {
    yield path;
    try {
      path = resolve(dirname(path), readlinkSync(path));
    } catch {
      return; // not a link
    }
  }
}
