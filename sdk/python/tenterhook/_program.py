"""Finds the program `tenterhook`, which is part of the wheels for supported platforms."""

import os
import subprocess
import sys
import sysconfig

# The exit status that hosts of gates read as "deny": a guard that cannot run must not let anything
# through.
_DENIED = 2


def find():
    """Returns the path of the program, or None if this installation does not contain it."""
    name = "tenterhook" + (sysconfig.get_config_var("EXE") or "")
    folders = [sysconfig.get_path("scripts")]
    # `pip install --user`
    folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")) if sys.version_info >= (3, 10) else None)
    # `pip install --target`
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    paths = (os.path.join(folder, name) for folder in folders if folder)
    return next((path for path in paths if os.path.isfile(path)), None)


def run():
    """Replaces this process with the program, for `python -m tenterhook`."""
    path = find()
    if path is None:
        report_missing()
    arguments = [path, *sys.argv[1:]]
    if sys.platform == "win32":
        sys.exit(subprocess.run(arguments).returncode)
    os.execv(path, arguments)


def report_missing():
    """Reports that this installation does not contain the program, and how to install it."""
    print(
        f"error: this package does not contain the program for your platform ({sysconfig.get_platform()}), only the Python module `tenterhook`\n"
        "hint: build the program in a checkout of Tenterhook: `cargo install --locked --path crates/cli`",
        file=sys.stderr,
    )
    sys.exit(_DENIED)
