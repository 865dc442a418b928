"""morphix's hook files: functions that `@hooks_registry.register("on_before_tool")` and the like stand above.

A handler gets one context object and may be a coroutine function. What it returns does not count. A handler of
`on_before_tool` that changes `ctx.parameters` in place changes what the tool runs with.
"""

import collections
import inspect
import json
import sys
import types
from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass
class HookContext:
    """What a handler is told of a tool call."""

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
    """Handlers by interception point, in the order in which they were registered."""

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

# What `log_operation` was told last.
trail = collections.deque(maxlen=1000)


def log_operation(operation, details="", success=True, **more):
    """Writes a line of the audit trail to standard error."""
    entry = {"operation": operation, "details": str(details)[:500], "success": bool(success), **more}
    trail.append(entry)
    print("audit: " + json.dumps(entry, default=str), file=sys.stderr)


def _name(handler):
    return getattr(handler, "__name__", type(handler).__name__)


# What the file that is being loaded has registered.
_registered = []
# Set by the worker: raises if the file that registers a hook is loaded already.
_check_loading = None


def _noted(registry, hook_point, handler):
    if registry is hooks_registry:
        _registered.append((hook_point, handler))


def prepare(sent):
    """Makes the context object of what the host sends, which keeps what it was."""
    context = HookContext(**{key: value for key, value in sent.items() if value is not None})
    if context.hook_point == "on_before_tool":
        context._before = (context.parameters, json.dumps(context.parameters))
    return context


def judge(context, _):
    """Returns what the host is told: the arguments, if the handler has changed them where they are."""
    before = getattr(context, "_before", None)
    if before is None:
        return None
    parameters, text = before
    return None if json.dumps(parameters) == text else {"parameters": parameters}


def begin():
    """Prepares for a file that is about to be loaded."""
    _registered.clear()


def forget(hooks):
    """Takes back what a file has registered."""
    for hook_point, handler in hooks:
        hooks_registry.unregister(hook_point, handler)


def abandon():
    """Takes back what a file has registered that could not be loaded to its end."""
    forget(_registered)
    _registered.clear()


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
    """Returns a handler that does nothing any more when it was unregistered."""

    def call(context):
        if handler in hooks_registry._hooks.get(hook_point, ()):
            return handler(context)
        return None

    return call


def install():
    """Makes morphix's modules importable. Nothing of the project's own is loaded in their place."""
    for name in ("core", "core.hooks", "core.hooks_registry", "agents", "agents.audit"):
        sys.modules[name] = types.ModuleType(name)
    for package in ("core", "core.hooks", "agents"):
        sys.modules[package].__path__ = []
    registry = sys.modules["core.hooks_registry"]
    registry.HookContext, registry.HooksRegistry = HookContext, HooksRegistry
    registry.hooks_registry = hooks_registry
    audit = sys.modules["agents.audit"]
    audit.log_operation, audit.trail = log_operation, trail
    for name in ("core.hooks", "core.hooks_registry", "agents.audit"):
        package, _, last = name.rpartition(".")
        setattr(sys.modules[package], last, sys.modules[name])


install()
