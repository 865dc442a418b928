"""The API of morphix's hook files, in which handlers are decorated with `@hooks_registry.register("on_before_tool")`.

A handler receives one context object and may be a coroutine function. Its return value is ignored. A handler of
`on_before_tool` can change the tool's arguments by modifying `ctx.parameters` in place.
"""

import collections
import datetime
import inspect
import json
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Optional

from tenterhook._standins import StandIns

# The points at which hooks run.
EVENTS = (
    "on_before_tool",
    "on_after_tool",
    "on_tool_error",
    "on_permission_denied",
    "on_token_budget_exceeded",
    "on_tools_disabled",
)


@dataclass
class HookContext:
    """What a handler receives about a tool call."""

    hook_point: str
    tool_name: str
    parameters: dict = field(default_factory=dict)
    role: str = "agent"
    result: Any = None
    error: Optional[str] = None
    duration: float = 0.0
    attempt: int = 1
    workspace: str = "main"
    session_id: Optional[str] = None


class HooksRegistry:
    """Handlers by hook point, in the order of their registration."""

    def __init__(self):
        self._hooks = {}

    def register(self, hook_point):
        def register(handler):
            if self is hooks_registry and _check_loading is not None:
                _check_loading()
            handlers = self._hooks.setdefault(hook_point, [])
            if handler not in handlers:
                handlers.append(handler)
                _noted(self, hook_point, handler)
            return handler

        return register

    async def dispatch(self, hook_point, context):
        handlers = list(self._hooks.get(hook_point, ()))
        if not handlers:
            return
        context.hook_point = hook_point
        for handler in handlers:
            try:
                result = handler(context)
                if inspect.isawaitable(result):
                    await result
            except Exception as error:
                print(f"hook {_name(handler)} of {hook_point} failed: {error}", file=sys.stderr)

    def unregister(self, hook_point, handler):
        handlers = self._hooks.get(hook_point, [])
        if handler not in handlers:
            return False
        handlers.remove(handler)
        if not handlers:
            del self._hooks[hook_point]
        return True

    def clear_hook_point(self, hook_point):
        self._hooks.pop(hook_point, None)

    def clear(self):
        self._hooks.clear()

    def list_hooks(self):
        return {point: [_name(handler) for handler in handlers] for point, handlers in self._hooks.items()}


hooks_registry = HooksRegistry()

# The latest entries of the audit trail.
_trail = collections.deque(maxlen=1000)
# The number of characters of an entry's details.
_MAX_DETAILS = 500

# A name that precedes a credential, and the credential: the rest of the quoted text, or the next word.
_CREDENTIAL = re.compile(
    r"""(?ix) (?P<name> \b [\w-]* (?: password | passwd | secret | token | api[_-]?key | authorization ) [\w-]* )
    (?P<sign> \\?["']? \s* [=:] \s* )
    (?: (?P<quote> \\?["'] ) (?: (?! (?P=quote) ) . )+ | (?: (?: bearer | basic ) \s+ )? [^\s"'\\,;&}]+ )"""
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
# The user name and the password in an address.
_USER_INFO = re.compile(r"://[^/@\s\"']+@")


def redact_credentials(text):
    """Replaces passwords, tokens and keys in a text with `***`."""
    text = _CREDENTIAL.sub(lambda found: f"{found['name']}{found['sign']}{found['quote'] or ''}***", text)
    return _USER_INFO.sub("://***@", _BEARER.sub(r"\1 ***", text))


def log_operation(operation, details="", user="morphix", success=True):
    """Adds an entry to the audit trail and writes it to standard error, without the credentials in it."""
    entry = {
        "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "operation": str(operation),
        # Cut twice, because the time for a long text grows with the square of its length.
        "details": redact_credentials(str(details)[: 4 * _MAX_DETAILS])[:_MAX_DETAILS],
        "user": str(user),
        "success": bool(success),
    }
    _trail.append(entry)
    print("audit: " + json.dumps(entry, ensure_ascii=False), file=sys.stderr)


def get_recent_operations(limit=50):
    """Returns the latest entries of the audit trail of this process, the newest last."""
    return [dict(entry) for entry in list(_trail)[-limit:]] if limit > 0 else []


def _name(handler):
    return getattr(handler, "__name__", type(handler).__name__)


# The hooks that the file being loaded has registered.
_registered = []
# Set by the worker. Raises if the file that registers a hook has already been loaded.
_check_loading = None


def _noted(registry, hook_point, handler):
    if registry is hooks_registry:
        _registered.append((hook_point, handler))


def prepare(sent):
    """Creates the context object from what the host sends. Stores the original parameters in it."""
    context = HookContext(**{key: value for key, value in sent.items() if value is not None})
    if context.hook_point == "on_before_tool":
        context._before = (context.parameters, json.dumps(context.parameters))
    return context


def judge(context, _):
    """Returns the answer for the host: the arguments, if the handler changed them in place."""
    before = getattr(context, "_before", None)
    if before is None:
        return None
    parameters, text = before
    return None if json.dumps(parameters) == text else {"parameters": parameters}


def event(name, fields):
    """Creates a context object for a test. Rejects fields that it lacks."""
    return prepare({"tool_name": "", **fields, "hook_point": name})


effect = judge


def begin():
    """Prepares for a file that is about to be loaded."""
    _registered.clear()


def forget(hooks):
    """Removes the hooks that a file has registered."""
    for hook_point, handler in hooks:
        hooks_registry.unregister(hook_point, handler)


def abandon():
    """Removes the hooks of a file that failed to load."""
    forget(_registered)
    _registered.clear()


def take():
    """Returns the hooks of a file for a test, and removes them from the registry."""
    hooks = [{**hook, "handler": hook["registered"][1]} for hook in collect(None)]
    forget([hook["registered"] for hook in hooks])
    return hooks


def collect(_):
    """Returns the hooks of a file that was loaded."""
    hooks = [
        {
            "name": _name(handler),
            "event": hook_point,
            "matcher": None,
            "priority": 0,
            "handler": _live(hook_point, handler),
            "prepare": prepare,
            "judge": judge,
            "registered": (hook_point, handler),
        }
        for hook_point, handler in _registered
    ]
    _registered.clear()
    return hooks


def _live(hook_point, handler):
    """Returns a handler that does nothing after it was unregistered."""

    def call(context):
        if handler in hooks_registry._hooks.get(hook_point, ()):
            return handler(context)
        return None

    return call


def project_of(path):
    """Returns the folder of the morphix project to which a file of hooks belongs, or None."""
    folder, name = os.path.split(os.path.dirname(os.path.abspath(path)))
    parent, of = os.path.split(folder)
    if name != "hooks":
        return None
    if of == "core":
        return parent
    root, collection = os.path.split(parent)
    return root if collection == "workspaces" else None


def stand_ins(roots=()):
    """Returns the finder of morphix's modules."""
    audit = ["log_operation", "get_recent_operations", "redact_credentials"]
    names = {
        "core.hooks": [],
        "core.hooks_registry": ["HookContext", "HooksRegistry", "hooks_registry"],
        "agents": audit,
        "agents.audit": audit,
    }
    return StandIns("morphix", names, globals().get, roots)
