"""The API of Operator's hook files: `hooks = [(event, handler), ...]`, or a function that returns such a list.

A handler receives one event object and may be a coroutine function. It returns nothing or the result object of its
event. The classes are importable under the names that they have in each version of Operator, such as
`operator_use.hooks.types`.
"""

import datetime
import os
import re
from dataclasses import field, fields, is_dataclass, make_dataclass
from typing import Any, Union

from tenterhook._standins import StandIns

# Every event with its fields and their defaults, in positional order. A function makes the default when it is needed.
EVENTS = {
    "session_start": {"reason": "startup", "previous_session_file": None},
    "session_before_switch": {"reason": "new", "target_session_file": None},
    "session_before_fork": {"entry_id": "", "position": "at"},
    "session_before_compact": {"preparation": None, "branch_entries": [], "custom_instructions": None},
    "session_compact": {"compaction_entry": None, "from_extension": False},
    "session_shutdown": {"reason": "quit", "target_session_file": None},
    "session_before_tree": {"preparation": lambda: named("TreePreparation")()},
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
    "subagent_end": {"task_id": "", "label": "", "status": lambda: named("SubagentStatus").completed, "result": None},
    "gateway:startup": {"channel_ids": []},
    "gateway:stop": {"channel_ids": [], "reason": "shutdown"},
    "channel:connect": {"channel_id": "", "kind": "", "account": None},
    "channel:disconnect": {"channel_id": "", "reason": "shutdown"},
    "message:receive": {
        "channel_id": "",
        "chat_id": "",
        "user_id": "",
        "text": "",
        "parts": [],
        "stt_enabled": None,
        "message_id": "",
        "thread_id": None,
        "reply_to": None,
        "is_direct": False,
        "is_voice": False,
        "role": "guest",
        "busy": False,
        "sender_name": None,
    },
    "message:send": {
        "channel_id": "",
        "chat_id": "",
        "input_text": "",
        "response_text": "",
        "is_voice": False,
        "tts_enabled": None,
        "message_ids": [],
        "user_id": "",
        "is_error": False,
        "audio_formats": [],
    },
    "message:cancel": {"channel_id": "", "chat_id": "", "user_id": "", "reason": "user"},
    "gateway:error": {
        "channel_id": "",
        "error": "",
        "chat_id": None,
        "message_id": None,
        "code": None,
        "will_retry": False,
    },
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

# What handlers may return, by class name.
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

# The parts of a channel message, by their type.
PARTS = {
    "text": ("TextPart", {"content": ""}),
    "audio": ("AudioPart", {"audio": "", "mime_type": None}),
    "image": ("ImagePart", {"images": [], "paths": None, "mime_type": None}),
    "file": ("FilePart", {"path": "", "mime_type": None}),
}

# The other dataclasses that hooks import.
RECORDS = {
    "TreePreparation": {
        "target_id": "",
        "old_leaf_id": None,
        "common_ancestor_id": None,
        "entries_to_summarize": [],
        "user_wants_summary": False,
        "custom_instructions": None,
        "replace_instructions": False,
        "label": None,
    },
    "IncomingMessage": {
        "channel": "",
        "chat_id": "",
        "parts": [],
        "user_id": "",
        "message_id": "",
        "metadata": {},
        "timestamp": datetime.datetime.now,
    },
    "OutgoingMessage": {
        "channel": "",
        "chat_id": "",
        "parts": [],
        "stream_phase": None,
        "metadata": {},
        "timestamp": datetime.datetime.now,
    },
}

# The enumerations, whose members are strings. Each member has its value as its name, in the given case.
ENUMS = {
    "StreamPhase": (str.upper, ("start", "chunk", "end", "done", "error")),
    "SubagentStatus": (str.lower, ("running", "completed", "failed", "cancelled")),
}

# The `__module__` of the classes.
HOME = "operator_use.hooks.types"

# Fields whose values are objects with attributes.
OBJECTS = frozenset(
    "preparation branch_entries compaction_entry summary_entry messages message tool_call partial_tool_result tool_result "
    "tool_results response".split()
)


class Record(dict):
    """An object within an event. Its keys are also attributes, and a missing key is None as an attribute."""

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
    """Sets a field of a result. Rejects unknown names, because a misspelled name would have no effect. Subclasses may add fields."""
    if type(self).__name__ in RESULTS and name not in type(self).__dataclass_fields__:
        raise AttributeError(f"{type(self).__name__} has no field {name!r}{guess(name, type(self).__name__)}")
    object.__setattr__(self, name, value)


def guess(name, result):
    """Returns a hint about the field that was probably meant, or a list of all fields."""
    import difflib

    near = difflib.get_close_matches(name, RESULTS[result], 1)
    return f"; did you mean {near[0]!r}?" if near else f", expected one of {', '.join(RESULTS[result])}"


def made(name, values, kind=None):
    """Creates a dataclass. With `kind`, it has a field `type` with this value, which no argument sets."""
    entries = [] if kind is None else [("type", str, field(default=kind, init=False))]
    for key, default in values.items():
        if callable(default):
            entries.append((key, Any, field(default_factory=default)))
        elif isinstance(default, (list, dict)):
            entries.append((key, type(default), field(default_factory=type(default))))
        else:
            entries.append((key, Any if default is None else type(default), field(default=default)))
    made = make_dataclass(name, entries, namespace={"__setattr__": set_known} if name in RESULTS else {})
    made.__module__ = HOME
    return made


def class_of(event):
    return "".join(word.capitalize() for word in re.split("[_:]", event)) + "Event"


def text_from_parts(parts):
    """Returns the text of a message: the text parts, one below the other."""
    return "\n".join(part.content for part in parts if isinstance(part, named("TextPart")))


def media_paths_from_parts(parts):
    """Returns the paths of the audio, image and file parts of a message, in order."""
    paths = []
    for part in parts:
        if isinstance(part, named("AudioPart")):
            paths.append(part.audio)
        elif isinstance(part, named("FilePart")):
            paths.append(part.path)
        elif isinstance(part, named("ImagePart")):
            paths.extend(part.paths or ())
    return paths


# Classes are created on first use, because most files need only a few of about seventy.
_made = {}


def named(name):
    """Returns the class or function of this name, or None."""
    if name not in _made:
        value = _make(name)
        if value is None:
            return None
        _made[name] = value
    return _made[name]


def _make(name):
    if name in _EVENT_CLASSES:
        event = _EVENT_CLASSES[name]
        return made(name, EVENTS[event], event)
    if name in _PART_CLASSES:
        kind = _PART_CLASSES[name]
        return made(name, {**PARTS[kind][1], "metadata": {}}, kind)
    for records in (RESULTS, RECORDS):
        if name in records:
            return made(name, records[name])
    if name in ENUMS:
        import enum

        case, words = ENUMS[name]
        kind = enum.Enum(name, {case(word): word for word in words}, module=HOME, type=str)
        # As in `enum.StrEnum`, which Python has since version 3.11.
        kind.__str__ = lambda member: member.value
        kind.__format__ = lambda member, spec: format(member.value, spec)
        return kind
    if name == "HookEvent":
        return Union[tuple(named(known) for known in _EVENT_CLASSES)]
    if name == "ContentPart":
        return Union[tuple(named(known) for known in _PART_CLASSES)]
    others = (Hooks, text_from_parts, media_paths_from_parts)
    return next((other for other in others if other.__name__ == name), None)


def part(value):
    """Returns a part as an object of its class. A part of an unknown type stays a mapping."""
    if not isinstance(value, dict) or value.get("type") not in PARTS:
        return record(value)
    name, values = PARTS[value["type"]]
    known = {key: value[key] for key in (*values, "metadata") if value.get(key) is not None}
    return named(name)(**known)


def prepare(event):
    """Returns the function that creates an event object from what the host sends."""
    known = EVENTS.get(event)
    if known is None:
        return record
    made = named(class_of(event))
    # How to convert the values that are not what the host sends.
    convert = {key: record for key in OBJECTS.intersection(known)}
    if "parts" in known:
        convert["parts"] = lambda values: [part(value) for value in values]
    convert.update(CONVERSIONS.get(event, {}))

    def make(sent):
        values = {key: sent[key] for key in known if key in sent}
        for key in convert.keys() & values.keys():
            values[key] = convert[key](values[key])
        return made(**values)

    return make


def status(word):
    """Returns the status of a subagent. A word that Operator does not know stays a string."""
    try:
        return named("SubagentStatus")(word)
    except ValueError:
        return word


def preparation(sent):
    """Returns the preparation of a move in the session tree."""
    if not isinstance(sent, dict):
        return sent
    known = {key: record(sent[key]) for key in RECORDS["TreePreparation"] if sent.get(key) is not None}
    return named("TreePreparation")(**known)


# Fields whose values are objects of a class of Operator.
CONVERSIONS = {"subagent_end": {"status": status}, "session_before_tree": {"preparation": preparation}}


def plain(value):
    """Converts a value to plain JSON types."""
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
    """Converts what a handler returned to the answer for the host. An object of a subclass counts as its base class."""
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
            raise AttributeError(f"the handler returned a {result} that only sets {others[0]!r}{guess(others[0], result)}")
    return {"class": result, "fields": plain(known)}


def attributes(value):
    """Returns the names of an object's public attributes, without methods. Includes attributes of its own classes."""
    names = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__[:-1]:
        if kind.__module__ != HOME:
            names.update(vars(kind))
            names.update(dict.fromkeys(vars(kind).get("__slots__", ())))
    return [name for name, held in names.items() if not name.startswith("_") and not callable(held)]


def event(name, fields):
    """Creates an event for a test. Rejects fields that the event lacks."""
    unknown = [key for key in fields if key not in EVENTS[name]]
    if unknown:
        known = ", ".join(EVENTS[name]) or "none"
        raise TypeError(f"the event {name!r} has no field {unknown[0]!r}; its fields are: {known}")
    return prepare(name)(fields)


def effect(_, value):
    """Returns what a handler returned, for a test. Rejects objects that the host would reject."""
    answer = judge(None, value)
    if answer is not None and answer["class"] not in RESULTS:
        kind = answer["class"]
        raise TypeError(f"the handler returned a {kind}, expected nothing or a result such as ToolCallEventResult")
    return value


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
    """Operator's event bus, for running a file without a host."""

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


def _names():
    """Returns the names in each module, for the three places that the modules have had in Operator."""
    hooks = ["HookEvent", "TreePreparation", "SubagentStatus", *_EVENT_CLASSES, *RESULTS]
    bus = ["ContentPart", "IncomingMessage", "OutgoingMessage", "StreamPhase", *_PART_CLASSES]
    bus += ["text_from_parts", "media_paths_from_parts"]
    modules = {
        "hooks.types": hooks,
        "hooks.service": ["Hooks"],
        "hooks": ["Hooks", *hooks],
        "bus.types": bus,
        "bus": bus,
        "subagent.types": ["SubagentStatus"],
    }
    places = ("operator_use", "operator_use.program", "program")
    return {f"{place}.{module}": names for place in places for module, names in modules.items()}


_EVENT_CLASSES = {class_of(event): event for event in EVENTS}
_PART_CLASSES = {name: kind for kind, (name, _) in PARTS.items()}


def project_of(path):
    """Returns the folder of the project to which a file of hooks belongs, or None."""
    folder, name = os.path.split(os.path.dirname(os.path.abspath(path)))
    root, of = os.path.split(folder)
    return root if (of, name) == (".operator", "hooks") else None


def stand_ins(roots=()):
    """Returns the finder of Operator's modules."""
    return StandIns("Operator", _names(), named, roots)
