"""Operator's hook files: `hooks = [(event, handler), ...]`, or a function that returns such a list.

A handler gets one event object, may be a coroutine function, and returns nothing or the result object of its event. The
classes are importable under Operator's names: `operator_use.program.hooks.types` and the like.
"""

import os
import re
import sys
import types
from dataclasses import field, fields, is_dataclass, make_dataclass
from typing import Any

# Every event with its fields and their defaults, in the order of their positions.
EVENTS = {
    "session_start": {"reason": "startup", "previous_session_file": None},
    "session_before_switch": {"reason": "new", "target_session_file": None},
    "session_before_fork": {"entry_id": "", "position": "at"},
    "session_before_compact": {"preparation": None, "branch_entries": [], "custom_instructions": None},
    "session_compact": {"compaction_entry": None, "from_extension": False},
    "session_shutdown": {"reason": "quit", "target_session_file": None},
    "session_before_tree": {"preparation": None},
    "session_tree": {"new_leaf_id": None, "old_leaf_id": None, "summary_entry": None, "from_extension": False},
    "input": {"text": "", "source": "interactive"},
    "before_agent_start": {"prompt": "", "system_prompt": ""},
    "context": {"messages": []},
    "agent_start": {},
    "agent_end": {"messages": [], "reason": "completed"},
    "agent_error": {"error": ""},
    "save_point": {},
    "settled": {},
    "turn_start": {"turn_index": 0, "timestamp": 0.0},
    "turn_end": {"turn_index": 0, "message": None, "tool_results": []},
    "message_start": {"message": None},
    "message_update": {"message": None},
    "message_end": {"message": None},
    "tool_execution_start": {"tool_call": None},
    "tool_execution_update": {"partial_tool_result": None},
    "tool_execution_end": {"tool_result": None},
    "tool_execution_failure": {"tool_name": "", "tool_call_id": "", "input": {}, "error": ""},
    "tool_call": {"tool_call_id": "", "tool_name": "", "input": {}},
    "tool_result": {"tool_call_id": "", "tool_name": "", "input": {}, "content": "", "is_error": False},
    "model_select": {"model": None, "previous_model": None, "source": "set"},
    "thinking_level_select": {"level": "", "previous_level": None},
    "subagent_start": {"task_id": "", "label": "", "task": ""},
    "subagent_end": {"task_id": "", "label": "", "status": "completed", "result": None},
    "gateway:startup": {"channel_ids": []},
    "gateway:stop": {"channel_ids": []},
    "channel:connect": {"channel_id": ""},
    "channel:disconnect": {"channel_id": ""},
    "message:receive": {"channel_id": "", "chat_id": "", "user_id": "", "text": "", "parts": []},
    "message:send": {"channel_id": "", "chat_id": "", "input_text": "", "response_text": "", "is_voice": False},
    "message:cancel": {"channel_id": "", "chat_id": ""},
    "gateway:error": {"channel_id": "", "error": ""},
    "user_bash": {"command": "", "exclude_from_context": False, "cwd": ""},
    "resources_discover": {"cwd": "", "reason": "startup"},
    "retry_start": {"attempt": 0, "max_retries": 0},
    "retry_end": {"attempt": 0, "success": False, "error": None},
    "before_provider_request": {"model": None, "messages": [], "options": {}},
    "after_provider_response": {"model": None, "response": None},
    "queue_update": {"queue": "steering", "message": None, "messages": []},
    "compaction_start": {"tokens_before": 0},
    "compaction_end": {"tokens_before": 0, "summary": ""},
}

# What handlers may return, by the name of the class.
RESULTS = {
    "ToolCallEventResult": {"block": False, "reason": None, "params": None},
    "ToolResultEventResult": {"content": None, "is_error": None, "terminate": False},
    "ContextEventResult": {"messages": None},
    "BeforeAgentStartEventResult": {"system_prompt": None},
    "SessionBeforeSwitchResult": {"cancel": False},
    "SessionBeforeForkResult": {"cancel": False},
    "SessionBeforeCompactResult": {"cancel": False, "compaction": None},
    "SessionBeforeTreeResult": {
        "cancel": False,
        "summary": None,
        "custom_instructions": None,
        "replace_instructions": None,
        "label": None,
    },
    "InputEventResult": {"action": "continue", "text": None},
    "MessageReceiveResult": {"action": "continue", "parts": None, "text": None, "reason": None},
    "MessageSendResult": {"parts": None},
    "MessageEndEventResult": {"message": None},
    "ChannelConnectResult": {"allow": True, "reason": None},
    "ResourcesDiscoverResult": {"skill_paths": [], "prompt_paths": [], "theme_paths": []},
    "CompactionResult": {"summary": "", "first_kept_entry_id": None, "tokens_before": 0, "details": None},
}

# Parts of a message of a channel, by their type.
PARTS = {
    "text": ("TextPart", {"content": ""}),
    "audio": ("AudioPart", {"audio": "", "mime_type": None}),
    "image": ("ImagePart", {"images": [], "paths": None, "mime_type": None}),
    "file": ("FilePart", {"path": "", "mime_type": None}),
}

# Where Operator keeps its classes.
TYPES = ("operator_use.program.hooks.types", "operator_use.hooks.types", "operator_use.bus.types")
SERVICES = ("operator_use.program.hooks.service", "operator_use.hooks.service")

# Fields whose values are objects with attributes.
OBJECTS = frozenset(
    "preparation branch_entries compaction_entry summary_entry messages message tool_call partial_tool_result tool_result "
    "tool_results response".split()
)


class Record(dict):
    """An object of an event: its keys are attributes too, and what is not there is None as an attribute."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name, value):
        self[name] = value


def record(value):
    if isinstance(value, dict):
        return Record((key, record(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return [record(inner) for inner in value]
    return value


def set_known(self, name, value):
    """Sets a field of a result. A name that is spelled wrong would be a result that says nothing; subclasses may have more."""
    if type(self).__name__ in RESULTS and name not in type(self).__dataclass_fields__:
        raise AttributeError(f"{type(self).__name__} has no field {name!r}{guess(name, type(self).__name__)}")
    object.__setattr__(self, name, value)


def guess(name, result):
    """Says which field of a result was meant, where one is near."""
    import difflib

    near = difflib.get_close_matches(name, RESULTS[result], 1)
    return f"; did you mean {near[0]!r}?" if near else f", expected one of {', '.join(RESULTS[result])}"


def made(name, values, kind=None):
    """Makes a dataclass. One of a `kind` has it as `type`, which no argument sets."""
    entries = [] if kind is None else [("type", str, field(default=kind, init=False))]
    for key, default in values.items():
        known = Any if default is None else type(default)
        if isinstance(default, (list, dict)):
            entries.append((key, known, field(default_factory=type(default))))
        else:
            entries.append((key, known, field(default=default)))
    made = make_dataclass(name, entries, namespace={"__setattr__": set_known} if name in RESULTS else {})
    made.__module__ = TYPES[0]
    return made


def class_of(event):
    return "".join(word.capitalize() for word in re.split("[_:]", event)) + "Event"


class Types(types.ModuleType):
    """A module whose classes are made when somebody asks for them: most files need one or two of sixty."""

    def __getattr__(self, name):
        made = named(name)
        if made is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return made


_made = {"HookEvent": Any, "Record": Record}


def named(name):
    """Returns a class by its name, or None."""
    if name not in _made:
        for event, values in EVENTS.items():
            if class_of(event) == name:
                _made[name] = made(name, values, event)
        for kind, (part, values) in PARTS.items():
            if part == name:
                _made[name] = made(name, {**values, "metadata": {}}, kind)
        if name in RESULTS:
            _made[name] = made(name, RESULTS[name])
    return _made.get(name)


def part(value):
    """Returns a part as an object of its class. One of an unknown type stays a mapping."""
    if not isinstance(value, dict) or value.get("type") not in PARTS:
        return record(value)
    name, values = PARTS[value["type"]]
    known = {key: value[key] for key in (*values, "metadata") if value.get(key) is not None}
    return named(name)(**known)


def prepare(event):
    """Returns the function that makes the object of an event out of what the host sends."""
    known = EVENTS.get(event)
    if known is None:
        return record
    made = named(class_of(event))
    objects = OBJECTS.intersection(known)
    with_parts = "parts" in known

    def make(sent):
        values = {key: sent[key] for key in known if key in sent}
        for key in objects:
            if key in values:
                values[key] = record(values[key])
        if with_parts and "parts" in values:
            values["parts"] = [part(value) for value in values["parts"]]
        return made(**values)

    return make


def plain(value):
    """Returns a value as JSON has it."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {key.name: plain(getattr(value, key.name)) for key in fields(value)}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if hasattr(value, "__dict__"):
        return plain(vars(value))
    raise TypeError(f"a {type(value).__name__} cannot be sent to the host")


def judge(_, value):
    """Returns the answer to the host for what a handler returned. An object of a subclass is one of its class."""
    if value is None:
        return None
    names = [kind.__name__ for kind in type(value).__mro__]
    result = next((name for name in names if name in RESULTS), None)
    if result is None:
        return {"class": names[0]}
    known = {key: getattr(value, key) for key in RESULTS[result] if hasattr(value, key)}
    if all(known.get(key, default) == default for key, default in RESULTS[result].items()):
        others = [key for key in attributes(value) if key not in RESULTS[result]]
        if others:
            raise AttributeError(f"the handler returned a {result} with {others[0]!r} alone{guess(others[0], result)}")
    return {"class": result, "fields": plain(known)}


def attributes(value):
    """Returns the names of the attributes that an object and its own classes have, without methods and private ones."""
    names = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__[:-1]:
        if kind.__module__ != TYPES[0]:
            names.update(vars(kind))
            names.update(dict.fromkeys(vars(kind).get("__slots__", ())))
    return [name for name, held in names.items() if not name.startswith("_") and not callable(held)]


def begin():
    """Prepares for a file that is about to be loaded."""


def collect(module):
    """Returns the hooks of a file that was loaded."""
    found = getattr(module, "hooks", None)
    if callable(found):
        found = found()
    if not isinstance(found, (list, tuple)):
        raise TypeError(f"`hooks` is {shown(found)}, expected a list of (event, handler), or a function that returns one")
    hooks = []
    for number, item in enumerate(found, 1):
        is_pair = isinstance(item, (list, tuple)) and len(item) == 2
        if not is_pair or not isinstance(item[0], str) or not callable(item[1]):
            raise TypeError(f"item {number} of `hooks` is {shown(item)}, expected (event, handler)")
        event, handler = item
        name = getattr(handler, "__name__", type(handler).__name__)
        hooks.append(
            {
                "name": name,
                "event": event,
                "matcher": None,
                "priority": 0,
                "handler": handler,
                "prepare": prepare(event),
                "judge": judge,
            }
        )
    if not hooks:
        raise TypeError("`hooks` is empty, expected a list of (event, handler)")
    return hooks


def shown(value):
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Hooks:
    """Operator's bus, for files that are tried out without a host."""

    def __init__(self):
        self._handlers = {}
        self._subscribers = []

    def register(self, event_type, handler):
        self._handlers.setdefault(event_type, []).append(handler)
        return lambda: self.unregister(event_type, handler)

    def unregister(self, event_type, handler):
        handlers = self._handlers.get(event_type, [])
        if handler in handlers:
            handlers.remove(handler)

    def on(self, event_type):
        def register(handler):
            self.register(event_type, handler)
            return handler

        return register

    def subscribe(self, handler):
        self._subscribers.append(handler)
        return lambda: self._subscribers.remove(handler)

    async def emit(self, event):
        results = []
        for handler in list(self._handlers.get(event.type, ())):
            try:
                results.append(await _called(handler, event))
            except Exception as error:
                _report(error)
        for subscriber in list(self._subscribers):
            try:
                await _called(subscriber, event)
            except Exception as error:
                _report(error)
        return results

    def handler_count(self, event_type):
        return len(self._handlers.get(event_type, ()))

    def registered_events(self):
        return [event for event, handlers in self._handlers.items() if handlers]

    def clear(self, event_type=None):
        if event_type is None:
            self._handlers.clear()
        else:
            self._handlers.pop(event_type, None)


async def _called(handler, event):
    result = handler(event)
    return await result if hasattr(result, "__await__") else result


def _report(error):
    import traceback

    traceback.print_exception(type(error), error, error.__traceback__)


def install():
    """Makes Operator's modules importable. Nothing of an Operator that is installed is loaded."""
    for name in (*TYPES, *SERVICES):
        parts = name.split(".")
        for depth in range(1, len(parts)):
            package = ".".join(parts[:depth])
            if not isinstance(sys.modules.get(package), Types):
                sys.modules[package] = Types(package)
                sys.modules[package].__path__ = []
        module = Types(name)
        if name in SERVICES:
            module.Hooks = Hooks
        sys.modules[name] = module
    for name in ("operator_use.program.hooks", "operator_use.hooks"):
        sys.modules[name].Hooks = Hooks


install()
