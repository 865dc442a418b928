"""Tries hooks without an agent: load a file, fire an event, look at the effects."""

import asyncio
import inspect
import pathlib
import re
import runpy

import tenterhook


class Hooks:
    """The hooks of one file."""

    def __init__(self, hooks):
        self._hooks = sorted(hooks, key=lambda hook: -hook["priority"])

    @property
    def names(self):
        """The names of the hooks with their events, in the order in which they run."""
        return [(hook["name"], hook["event"]) for hook in self._hooks]

    def fire(self, event, subject=None, **payload):
        """Sends one event through the hooks and returns their effects, without those that said nothing.

        `subject` is what matchers look at; the default is the tool's name. Each hook sees the event as it was sent: how effects combine is the
        engine's business.
        """
        subject = payload.get("tool_name") if subject is None else subject
        effects = []
        for hook in self._hooks:
            if hook["event"] != event or not _matches(hook["matcher"], subject):
                continue
            effect = hook["handler"](tenterhook.Event(payload))
            if inspect.isawaitable(effect):
                effect = asyncio.run(_wait(effect))
            if effect is None:
                continue
            if not isinstance(effect, dict):
                kind = type(effect).__name__
                raise TypeError(f"{hook['name']} returned a {kind}, expected nothing or what deny(), patch() and the like return")
            effects.append(effect)
        return effects


async def _wait(awaitable):
    return await awaitable


def _matches(matcher, subject):
    if matcher in (None, "", "*"):
        return True
    if subject is None:
        return False
    return re.fullmatch(matcher, subject) is not None


def load(path):
    """Loads a file of hooks as a worker does."""
    tenterhook._hooks.clear()
    tenterhook._open.clear()
    runpy.run_path(str(pathlib.Path(path)))
    return Hooks(tenterhook._take())
