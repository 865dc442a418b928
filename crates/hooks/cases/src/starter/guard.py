"""This guard keeps the file tools of agents away from files with secrets.

Try it:     tenterhook test
Use it:     {use}

It judges only paths. Deny commands with `deny_commands` in a hook file, which `tenterhook init` writes: a
command line has too many spellings to be judged as text, such as `cat .e*` and `sh -c 'cat .env'`.
"""

import os

from tenterhook import deny, on


# `tool_guard` sees each tool call as it would run, after all changes by other hooks. If the guard fails, for
# example because a call has no path, the call is denied.
@on("tool_guard", matcher="read_file|write_file|edit_file|delete_file")
def guard(event):
    path = os.path.join(event.cwd, event.tool_input["path"])
    # A link can have any name, so the name of the file behind it counts as well.
    if is_secret(path) or is_secret(os.path.realpath(path)):
        return deny("files with secrets are not allowed here")


def is_secret(path):
    name = os.path.basename(path).lower()
    if name == ".env.example":
        return False
    return name == ".env" or name.startswith(".env.") or name.endswith((".pem", ".key"))
