"""Hooks for AI agents, in Python.

    from tenterhook import deny, on

    @on("pre_tool_use", matcher="shell")
    def no_sudo(event):
        if event.tool_input.get("cmd", "").startswith("sudo "):
            return deny("no sudo here")

A handler gets one event and answers nothing, or one effect, or several joined with `|`. It may be a coroutine function; one
that waits for something should be. Events and what they honour are in the catalogue of Tenterhook's documentation.
"""

__all__ = [
    "Effect",
    "Event",
    "allow",
    "ask",
    "block",
    "context",
    "deny",
    "follow_up",
    "handled",
    "notice",
    "on",
    "patch",
    "stop_run",
]


class Event(dict):
    """One event: a mapping whose keys are attributes too. What is not there is None as an attribute."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)


class Effect(dict):
    """What a handler answers. `a | b` is both; of two permissions the stronger one counts."""

    _STRENGTH = {"allow": 1, "ask": 2, "deny": 3}

    def __or__(self, other):
        if not isinstance(other, Effect):
            return NotImplemented
        both = Effect(self)
        for key, value in other.items():
            if key not in both:
                both[key] = value
            elif isinstance(value, list):
                both[key] = both[key] + value
            elif key == "permission":
                mine = self._STRENGTH[both[key]["permission"]]
                if self._STRENGTH[value["permission"]] > mine:
                    both[key] = value
            elif isinstance(value, dict):
                both[key] = {**both[key], **value}
        return both


def _permission(word, reason):
    verdict = {"permission": word}
    if reason is not None:
        verdict["reason"] = str(reason)
    return Effect(permission=verdict)


def allow():
    """Lets the operation go on without a question, unless another hook says ask or deny."""
    return _permission("allow", None)


def ask(reason):
    """Leaves the operation to the user."""
    return _permission("ask", reason)


def deny(reason):
    """Denies the operation; the model is told the reason."""
    return _permission("deny", reason)


def block(reason):
    """Stops the operation."""
    return Effect(block=str(reason))


def patch(**fields):
    """Changes fields of the event: `patch(tool_input={"cmd": "ls"})`."""
    return Effect(rewrite=fields)


def context(text):
    """Adds text for the model."""
    return Effect(context=[str(text)])


def follow_up(text):
    """Adds a message of the user that keeps the agent going."""
    return Effect(follow_up=[str(text)])


def notice(text):
    """Adds a text for the human only."""
    return Effect(notices=[str(text)])


def stop_run(reason):
    """Ends the agent's run after this step."""
    return Effect(stop_run=str(reason))


def handled():
    """Says that the hook did the work itself."""
    return Effect(handled=True)


# The hooks of the file that is being loaded, in the order in which they were registered.
_hooks = []


def on(event, matcher=None, priority=0):
    """Registers a handler for an event, or for each of several.

    `matcher` is a name, names joined by bars, or a regular expression, for what the event is about: the tool's name. Handlers of a higher
    `priority` run first.
    """
    events = [event] if isinstance(event, str) else list(event)

    def register(handler):
        if not callable(handler):
            raise TypeError(f"@on({event!r}) stands before {handler!r}, which cannot be called")
        for name in events:
            _hooks.append(
                {
                    "name": getattr(handler, "__name__", "handler"),
                    "event": name,
                    "matcher": matcher,
                    "priority": priority,
                    "handler": handler,
                }
            )
        return handler

    return register
