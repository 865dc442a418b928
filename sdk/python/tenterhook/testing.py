"""Runs hooks without an agent: load a file, fire an event, and check the effects."""

import asyncio
import contextlib
import difflib
import inspect
import itertools
import pathlib
import re
import sys
import types

import tenterhook
from tenterhook import _morphix, _operator

_SYSTEMS = {"operator": _operator, "morphix": _morphix}


class Hooks:
    """The hooks of one file."""

    def __init__(self, hooks, system="tenterhook", path=None):
        self._hooks = sorted(hooks, key=lambda hook: -hook["priority"])
        self.system = system
        self._path = path

    @property
    def names(self):
        """The names of the hooks with their events, in the order in which they run."""
        return [(hook["name"], hook["event"]) for hook in self._hooks]

    def fire(self, event, subject=None, **payload):
        """Sends one event to the hooks and returns their effects. Hooks without an opinion add nothing.

        `subject` is what matchers check. The default is the tool's name. Each hook receives the event as it was sent,
        because only the engine combines effects.

        For hooks of Operator and morphix, `event` and the fields have the names of that system. The effects are then
        the result objects of Operator, or the changed `parameters` of morphix.
        """
        subject = payload.get("tool_name") if subject is None else subject
        make = self._maker(event, payload)
        hooks = [hook for hook in self._hooks if hook["event"] == event and _matches(hook["matcher"], subject)]
        with _imports_of_systems(self._path):
            effects = [self._run(hook, make()) for hook in hooks]
        return [effect for effect in effects if effect is not None]

    def _run(self, hook, sent):
        """Runs one hook and returns its effect."""
        value = hook["handler"](sent)
        if inspect.isawaitable(value):
            value = asyncio.run(_wait(value))
        return self._effect(hook, sent, value)

    def _maker(self, event, payload):
        """Returns the function that creates what a handler receives."""
        system = _SYSTEMS.get(self.system)
        if system is None:
            return lambda: tenterhook.Event(payload)
        if event not in system.EVENTS:
            near = difflib.get_close_matches(event, system.EVENTS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(system.EVENTS)}"
            raise ValueError(f"{self.system} has no event {event!r}; {hint}")
        return lambda: system.event(event, payload)

    def _effect(self, hook, sent, value):
        if self.system in _SYSTEMS:
            return _SYSTEMS[self.system].effect(sent, value)
        if value is not None and not isinstance(value, dict):
            kind = type(value).__name__
            expected = "expected nothing or what a function such as deny() or patch() returns"
            raise TypeError(f"{hook['name']} returned a {kind}, {expected}")
        return value


@contextlib.contextmanager
def _imports_of_systems(path):
    """Provides the modules of the systems to the file at `path`, as in a worker."""
    with contextlib.ExitStack() as stack:
        for system in _SYSTEMS.values():
            finder = system.stand_ins()
            finder.add_root(path and system.project_of(path))
            stack.enter_context(finder.alone())
        yield


async def _wait(awaitable):
    return await awaitable


def _matches(matcher, subject):
    if matcher in (None, "", "*"):
        return True
    if subject is None:
        return False
    return re.fullmatch(matcher, subject) is not None


_numbers = itertools.count(1)


def load(path):
    """Loads a file of hooks in the same way as a worker. Finds hooks of Tenterhook's own API, Operator and morphix.

    Raises LookupError if the file registers no hooks.
    """
    path = pathlib.Path(path)
    if path.suffix != ".py":
        raise LookupError(f"{path.name} is not a Python file; `tenterhook test` tests hooks of every kind")
    code = compile(path.read_bytes(), str(path), "exec")
    module = types.ModuleType(f"tenterhook_test_{next(_numbers)}")
    module.__file__ = str(path)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        # At the end of the path, as in a worker.
        sys.path.append(folder)
    sys.modules[module.__name__] = module
    tenterhook._hooks.clear()
    tenterhook._open.clear()
    with _imports_of_systems(path):
        _morphix.begin()
        try:
            exec(code, module.__dict__)
        except SystemExit as error:
            raise LookupError(
                f"{path.name} exited while it was loaded; `tenterhook test` tests hooks that run as commands"
            ) from error
        finally:
            of_morphix = _morphix.take()
    found = {"tenterhook": tenterhook._take(), "morphix": of_morphix}
    if isinstance(getattr(module, "hooks", None), (list, tuple, types.FunctionType)) and not any(found.values()):
        found["operator"] = _operator.collect(module)
    systems = [system for system, hooks in found.items() if hooks]
    if not systems:
        raise LookupError(
            f"{path.name} registers no hooks; expected `@on(...)` of tenterhook, a list `hooks` of Operator, or "
            "`@hooks_registry.register(...)` of morphix"
        )
    if len(systems) > 1:
        raise LookupError(f"{path.name} registers hooks of {' and '.join(systems)}; expected hooks of one system")
    return Hooks(found[systems[0]], systems[0], path)


def provide_modules(root="."):
    """Makes the modules that hooks of Operator and morphix import available to tests, next to the project's packages.

    `root` is the folder of the project. Modules that are installed, or that the project has itself, are used as they
    are. The plugin for pytest calls this function.
    """
    for system in _SYSTEMS.values():
        system.stand_ins([root]).add_last()
