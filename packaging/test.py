#!/usr/bin/env python3
"""Builds the packages for Python and npm, installs them into empty environments and uses them there.

    packaging/test.py [--profile PROFILE] [wheel] [python-sdk] [pytest] [npm]

Needs cargo. A part whose tools are missing is reported as not checked. Nothing is installed outside of a temporary folder.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = json.loads((ROOT / "sdk/javascript/tenterhook/package.json").read_text())["version"]
# How long a program may take that has to end.
PATIENCE = 120

GUARD_PY = """
from tenterhook import deny, on

@on("pre_tool_use", matcher="shell")
def guard(event):
    if event.tool_input.get("cmd", "").startswith("sudo "):
        return deny("no sudo here")
"""
TRY_PY = """
from tenterhook.testing import load

hooks = load("guard.py")
[effect] = hooks.fire("pre_tool_use", tool_name="shell", tool_input={"cmd": "sudo ls"})
assert effect["permission"] == {"permission": "deny", "reason": "no sudo here"}, effect
assert hooks.fire("pre_tool_use", tool_name="shell", tool_input={"cmd": "ls"}) == []
"""
# A project of morphix: a hook, and tests in the form that morphix's guide shows. `core` belongs to the project.
MORPHIX = {
    "core/__init__.py": "NAME = 'mine'\n",
    "core/hooks/counter.py": """
import logging
from agents.audit import log_operation
from core.hooks_registry import HookContext, hooks_registry

logger = logging.getLogger(__name__)
calls = {}

@hooks_registry.register("on_before_tool")
def count(ctx: HookContext) -> None:
    calls[ctx.tool_name] = calls.get(ctx.tool_name, 0) + 1
    log_operation("tool_before", f"{ctx.tool_name} password={ctx.parameters.get('password')}")

@hooks_registry.register("on_tool_error")
async def report(ctx: HookContext) -> None:
    logger.warning("%s failed (attempt %s)", ctx.tool_name, ctx.attempt)
""",
    "tests/test_registry.py": """
import pytest
from core.hooks_registry import HookContext, HooksRegistry

@pytest.mark.asyncio
async def test_a_hook_counts_calls():
    registry, seen = HooksRegistry(), []

    @registry.register("on_before_tool")
    def count(ctx: HookContext) -> None:
        seen.append(ctx.tool_name)

    ctx = HookContext(hook_point="on_before_tool", tool_name="file_manager", parameters={"action": "read"})
    await registry.dispatch("on_before_tool", ctx)
    await registry.dispatch("on_before_tool", ctx)
    assert seen == ["file_manager", "file_manager"]

@pytest.mark.asyncio
async def test_a_hook_sees_the_error():
    registry, seen = HooksRegistry(), []

    @registry.register("on_tool_error")
    async def keep(ctx: HookContext) -> None:
        seen.append((ctx.error, ctx.attempt))

    await registry.dispatch("on_tool_error", HookContext("on_tool_error", "shell", error="no", attempt=2))
    assert seen == [("no", 2)]

def test_a_hook_can_be_removed():
    registry = HooksRegistry()

    @registry.register("on_before_tool")
    def hook(ctx: HookContext) -> None:
        pass

    assert registry.list_hooks() == {"on_before_tool": ["hook"]}
    assert registry.unregister("on_before_tool", hook)
    assert registry.list_hooks() == {}
""",
    "tests/test_counter.py": """
import asyncio
import core
import core.hooks.counter as counter
from agents.audit import get_recent_operations
from core.hooks_registry import HookContext, hooks_registry
from tenterhook.testing import load

def test_the_project_keeps_its_own_package():
    assert core.NAME == "mine"

def test_the_hook_counts_calls():
    ctx = HookContext("", "shell", {"password": "swordfish"})
    asyncio.run(hooks_registry.dispatch("on_before_tool", ctx))
    assert counter.calls == {"shell": 1}
    assert get_recent_operations(1)[0]["details"] == "shell password=***"

def test_each_hook_point_is_covered(caplog):
    hooks = load("core/hooks/counter.py")
    assert hooks.system == "morphix"
    assert hooks.names == [("count", "on_before_tool"), ("report", "on_tool_error")]
    assert hooks.fire("on_tool_error", tool_name="shell", attempt=2) == []
    assert "shell failed (attempt 2)" in caplog.text
""",
}
# A project of Operator: a hook without an import at its top, and its test.
OPERATOR = {
    ".operator/hooks/guard.py": """
async def guard(event):
    from program.hooks.types import ToolCallEventResult
    if event.input.get("cmd", "").startswith("sudo "):
        return ToolCallEventResult(block=True, reason="no sudo here")

hooks = [("tool_call", guard)]
""",
    "test_guard.py": """
import pytest
from operator_use.hooks.types import *
from tenterhook.testing import load

def test_sudo_is_blocked():
    hooks = load(".operator/hooks/guard.py")
    [result] = hooks.fire("tool_call", tool_name="terminal", input={"cmd": "sudo ls"})
    assert isinstance(result, ToolCallEventResult) and result.block
    assert hooks.fire("tool_call", tool_name="terminal", input={"cmd": "ls"}) == []

def test_a_misspelled_event_is_an_error():
    with pytest.raises(ValueError, match="did you mean 'tool_call'"):
        load(".operator/hooks/guard.py").fire("tool_cal")

def test_a_file_without_hooks_is_an_error():
    with pytest.raises(LookupError, match="registers no hooks"):
        load(__file__)
""",
}
GUARD_MJS = """
import { deny, on } from 'tenterhook';

on('pre_tool_use', { matcher: 'shell' }, (event) => {
  if (event.tool_input.cmd?.startsWith('sudo ')) return deny('no sudo here');
});
"""
TRY_MJS = """
import assert from 'node:assert/strict';
import { load } from 'tenterhook/testing';

const hooks = await load('guard.mjs');
const [effect] = await hooks.fire('pre_tool_use', { tool_name: 'shell', tool_input: { cmd: 'sudo ls' } });
assert.deepEqual(effect.permission, { permission: 'deny', reason: 'no sudo here' });
assert.deepEqual(await hooks.fire('pre_tool_use', { tool_name: 'shell', tool_input: { cmd: 'ls' } }), []);
"""
DENY_YAML = """
hooks:
  - name: house-rules
    event: tool_guard
    matcher: shell
    builtin: deny_commands
    args: [sudo]
"""
SLEEP_YAML = """
hooks:
  - name: sleeper
    event: turn_start
    command: "echo $$ > started; exec sleep 600"
    timeout: 600
"""


class NotChecked(Exception):
    """A tool that a part needs is not there."""


class Place:
    """An empty home and working directory, and the environment of programs that run there."""

    def __init__(self, folder):
        self.folder = folder
        self.work = folder / "work"
        self.config = folder / "config"
        for path in (folder / "home", self.work, self.config / "hooks"):
            path.mkdir(parents=True)
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE")}
        self.environment = {**kept, "HOME": str(folder / "home"), "TENTERHOOK_CONFIG_DIR": str(self.config)}

    def run(self, *words, status=0, where=None):
        """Runs a program to its end and returns what it printed, errors included."""
        words = [str(word) for word in words]
        ran = subprocess.run(
            words,
            cwd=where or self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        expect(ran.returncode == status, f"{' '.join(words)}: status {ran.returncode}, expected {status}", ran.stdout)
        return ran.stdout


def expect(is_met, what, output=""):
    if not is_met:
        sys.exit(f"error: {what}\n{output}")


def tool(*words, where=ROOT, **variables):
    """Runs a tool that makes a package; returns its standard output."""
    ran = subprocess.run([str(word) for word in words], cwd=where, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
    expect(ran.returncode == 0, f"{' '.join(map(str, words))}: status {ran.returncode}", ran.stdout)
    return ran.stdout


def fresh_python(folder):
    """Makes an empty environment of Python and returns the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin"


def python_with(folder, *packages):
    programs = fresh_python(folder)
    got = subprocess.run([programs / "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    if got.returncode != 0:
        raise NotChecked(f"cannot install {', '.join(packages)}")
    return programs


def check_program(place, *program):
    """Uses an installed program."""
    version = place.run(*program, "--version").strip()
    expect(version == f"tenterhook {VERSION}", f"the program says `{version}`, expected `tenterhook {VERSION}`")

    start = time.monotonic()
    demo = place.run(*program, "demo")
    expect("denied" in demo.lower(), "the demo shows no denied call", demo)
    print(f"  demo: {time.monotonic() - start:.1f} s")

    (place.work / "deny.yaml").write_text(DENY_YAML)
    fire = (*program, "fire", "tool_guard", "--no-journal", "--hooks", "deny.yaml", "--tool", "shell", "--arg")
    place.run(*fire, "cmd=cd /tmp && sudo reboot", status=2)
    # One argument, with what a shell would split or expand.
    place.run(*fire, "cmd=echo 'a  b' $HOME *", status=0)
    check_interrupt(place, program)


def check_shim(place, shim):
    version = place.run(shim, "--version").strip()
    expect(version.startswith(f"tenterhook-shim {VERSION} "), f"the shim says `{version}`, expected `tenterhook-shim {VERSION}`")


def check_interrupt(place, program):
    """Sends the signal of Ctrl-C to the program's group, as a terminal does, while a hook runs."""
    (place.work / "sleep.yaml").write_text(SLEEP_YAML)
    started = place.work / "started"
    started.unlink(missing_ok=True)
    words = [str(word) for word in (*program, "fire", "turn_start", "--no-journal", "--hooks", "sleep.yaml")]
    child = subprocess.Popen(
        words,
        cwd=place.work,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        until(lambda: started.exists() and started.read_text().strip(), "the hook has not started", child)
        os.killpg(child.pid, signal.SIGINT)
        output, _ = child.communicate(timeout=PATIENCE)
    finally:
        if child.poll() is None:
            child.kill()
    # npx ends by the signal itself; a shell shows the same status for both.
    status = 128 - child.returncode if child.returncode < 0 else child.returncode
    expect(status == 130, f"{' '.join(words)}: status {status} after Ctrl-C, expected 130", output)
    hook = int(started.read_text())
    until(lambda: not is_alive(hook), "the hook is still alive after Ctrl-C")


def follow_pages(programs):
    """Follows the documentation to a real agent that shows a denial, without Rust."""
    ran = subprocess.run([ROOT / ".ci/first-guard", "--programs", programs], stdin=subprocess.DEVNULL)
    expect(ran.returncode == 0, f"the documentation does not lead to a guarded agent with the programs in {programs}")


def until(is_met, what, child=None):
    end = time.monotonic() + PATIENCE
    while not is_met():
        if child and child.poll() is not None:
            sys.exit(f"error: {what}, and the program has ended\n{child.stdout.read()}")
        expect(time.monotonic() < end, what)
        time.sleep(0.02)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def check_hook(place, program, name, text):
    """Fires an event at a script of the user's hooks folder."""
    (place.config / "hooks" / name).write_text(text)
    fire = (program, "fire", "pre_tool_use", "--no-journal", "--tool", "shell", "--arg")
    denied = place.run(*fire, "cmd=sudo ls", status=2)
    expect("no sudo here" in denied, "the hook's reason is not shown", denied)
    place.run(*fire, "cmd=ls")


def test_wheel(folder, program, profile):
    """`pip install tenterhook` brings the program and the package that hooks import."""
    tools = python_with(folder / "tools", "maturin>=1.9,<2")
    out = folder / "dist"
    tool(tools / "maturin", "build", "--profile", profile, "--out", out)
    [wheel] = out.glob("tenterhook-*.whl")
    print(f"  {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")

    programs = fresh_python(folder / "empty")
    place = Place(folder / "place")
    place.run(programs / "pip", "install", "--quiet", "--no-index", wheel)
    check_program(place, programs / "tenterhook")
    check_shim(place, programs / "tenterhook-shim")
    expect(place.run(programs / "python", "-m", "tenterhook", "--version").strip() == f"tenterhook {VERSION}", "python -m tenterhook")
    (place.work / "guard.py").write_text(GUARD_PY)
    place.run(programs / "python", "-c", TRY_PY)
    check_hook(place, programs / "tenterhook", "guard.py", GUARD_PY)
    follow_pages(programs)
    place.run(programs / "pip", "uninstall", "--quiet", "--yes", "tenterhook")
    expect(not (programs / "tenterhook").exists(), "the program is left after `pip uninstall`")


def test_python_sdk(folder, program, profile):
    """The package for Python builds without the program, as a wheel and as sources."""
    tools = python_with(folder / "tools", "build", "setuptools>=77")
    # A copy: a build leaves folders next to the sources.
    sources = folder / "sources"
    shutil.copytree(ROOT / "sdk/python", sources, ignore=shutil.ignore_patterns("__pycache__"))
    out = folder / "dist"
    tool(tools / "python", "-m", "build", "--no-isolation", "--outdir", out, sources)
    [wheel] = out.glob("tenterhook-*-py3-none-any.whl")
    [archive] = out.glob("tenterhook-*.tar.gz")
    listed = tool("tar", "-tzf", archive)
    for part in ("LICENSE-MIT", "LICENSE-APACHE", "tenterhook/py.typed", "tenterhook/__init__.pyi", "README.md"):
        expect(f"/{part}\n" in listed, f"{archive.name} lacks {part}", listed)

    programs = fresh_python(folder / "empty")
    place = Place(folder / "place")
    place.run(programs / "pip", "install", "--quiet", "--no-index", wheel)
    (place.work / "guard.py").write_text(GUARD_PY)
    place.run(programs / "python", "-c", TRY_PY)
    typed = "import pathlib, tenterhook; assert (pathlib.Path(tenterhook.__file__).parent / 'py.typed').exists()"
    place.run(programs / "python", "-c", typed)
    missing = place.run(programs / "tenterhook", "fire", "pre_tool_use", status=2)
    expect("cargo install --locked --path crates/cli" in missing, "a missing program is not explained", missing)
    check_hook(place, program, "guard.py", GUARD_PY)


def test_pytest(folder, program, profile):
    """Tests of hooks of morphix and Operator run with pytest and the installed package."""
    tools = python_with(folder / "tools", "setuptools>=77", "wheel")
    sources = folder / "sources"
    shutil.copytree(ROOT / "sdk/python", sources, ignore=shutil.ignore_patterns("__pycache__"))
    out = folder / "dist"
    quiet = ("--quiet", "--disable-pip-version-check")
    tool(tools / "pip", "wheel", *quiet, "--no-build-isolation", "--no-deps", "-w", out, sources)
    [wheel] = out.glob("tenterhook-*-py3-none-any.whl")
    programs = python_with(folder / "tests", "pytest>=8", "pytest-asyncio", str(wheel))
    for name, files in (("morphix", MORPHIX), ("operator", OPERATOR)):
        place = Place(folder / name)
        for path, text in files.items():
            (place.work / path).parent.mkdir(parents=True, exist_ok=True)
            (place.work / path).write_text(text)
        (place.work / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
        ran = place.run(programs / "pytest", "-q", "-p", "no:cacheprovider")
        print(f"  {name}: {ran.strip().splitlines()[-1]}")


def test_npm(folder, program, profile):
    """`npx tenterhook` runs the program, and hooks find their types and their test harness."""
    for needed in ("node", "npm", "npx"):
        if not shutil.which(needed):
            raise NotChecked(f"`{needed}` is not in the search path")
    system = {"Linux": "linux", "Darwin": "darwin"}[platform.system()]
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine().lower()]
    libc = "-musl" if system == "linux" and platform.libc_ver()[0] != "glibc" else ""
    pack = ("node", ROOT / "packaging/npm/pack.mjs", "--out", folder / "dist")
    main = tool(*pack).strip()
    carrier = tool(*pack, "--platform", f"{system}-{machine}{libc}", "--program", program).strip()
    print(f"  {pathlib.Path(carrier).name}: {os.path.getsize(carrier) / 1e6:.1f} MB")

    place = Place(folder / "place")
    quiet = ("--offline", "--no-audit", "--no-fund", "--loglevel=error")
    (place.work / "package.json").write_text('{"private": true}')
    place.run("npm", "install", *quiet, main, carrier)
    check_program(place, place.work / "node_modules/.bin/tenterhook")
    check_program(place, "npx", "--no-install", "tenterhook")
    (place.work / "guard.mjs").write_text(GUARD_MJS)
    (place.work / "try.mjs").write_text(TRY_MJS)
    place.run("node", "try.mjs")
    check_hook(place, place.work / "node_modules/.bin/tenterhook", "guard.mjs", GUARD_MJS)

    shims = list((place.work / "node_modules/@tenterhook").glob("*/bin/tenterhook-shim"))
    expect(len(shims) == 1, f"expected one shim, found {shims}")
    check_shim(place, shims[0])
    follow_pages(place.work / "node_modules/.bin")

    # A program that cannot be started denies, too.
    for carried in (place.work / "node_modules/@tenterhook").glob("*/bin/tenterhook"):
        carried.chmod(0o644)
    place.run(place.work / "node_modules/.bin/tenterhook", "fire", "pre_tool_use", status=2)

    bare = Place(folder / "bare")
    (bare.work / "package.json").write_text('{"private": true}')
    bare.run("npm", "install", *quiet, "--omit=optional", main)
    missing = bare.run(bare.work / "node_modules/.bin/tenterhook", "fire", "pre_tool_use", status=2)
    expect("is not installed" in missing and "--omit=optional" in missing, "a missing program is not explained", missing)


PARTS = {"wheel": test_wheel, "python-sdk": test_python_sdk, "pytest": test_pytest, "npm": test_npm}


def main():
    parser = argparse.ArgumentParser(description="Tests the packages for Python and npm.")
    parser.add_argument("--profile", default="dev", help="the profile of cargo that the program is built with (default: dev)")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"one of {', '.join(PARTS)} (default: all)")
    arguments = parser.parse_args()
    tool("cargo", "build", "--quiet", "--locked", "--package", "tenterhook-cli", "--profile", arguments.profile)
    metadata = json.loads(tool("cargo", "metadata", "--no-deps", "--format-version", "1"))
    built = {"dev": "debug"}.get(arguments.profile, arguments.profile)
    program = pathlib.Path(metadata["target_directory"]) / built / "tenterhook"
    for name in arguments.parts or PARTS:
        print(f"{name}: {PARTS[name].__doc__}", flush=True)
        with tempfile.TemporaryDirectory(prefix="tenterhook-packages-") as folder:
            try:
                PARTS[name](pathlib.Path(folder), program, arguments.profile)
                print(f"{name}: ok", flush=True)
            except NotChecked as error:
                print(f"{name}: not checked: {error}", flush=True)


if __name__ == "__main__":
    main()
