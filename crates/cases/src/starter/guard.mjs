// This guard keeps the file tools of agents away from files with secrets.
//
// Try it:     tenterhook test
// Use it:     {use}
//
// It judges only paths. Deny commands with `deny_commands` in a hook file, which `tenterhook init` writes: a
// command line has too many spellings to be judged as text, such as `cat .e*` and `sh -c 'cat .env'`.

import { lstatSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { deny, on } from 'tenterhook';

const tools = 'read_file|write_file|edit_file|delete_file';

// `tool_guard` sees each tool call as it would run, after all changes by other hooks. If the guard fails, for
// example because a call has no path, the call is denied.
on('tool_guard', { matcher: tools }, function guard(event) {
  const path = resolve(event.cwd, event.tool_input.path);
  // A link can have any name, so the name of the file behind it counts as well.
  const exists = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  if (isSecret(path) || (exists && isSecret(realpathSync(path)))) {
    return deny('files with secrets are not allowed here');
  }
});

function isSecret(path) {
  const name = basename(path).toLowerCase();
  if (name === '.env.example') return false;
  return name === '.env' || name.startsWith('.env.') || /\.(pem|key)$/.test(name);
}
