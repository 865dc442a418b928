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


# The fields that events of the catalogue have. A test of the host keeps the list complete.
_FIELDS = frozenset(
    """
    agent agent_name agent_switch_kind approval_decision approval_source attempt blocked branch_entries budget by
    channel_id channel_ids chat_id child_session_id class command compaction_entry compaction_reason context_limit cost
    custom_instructions cwd decision default_directory delta duration_ms entry_id error event event_id
    exclude_from_context from_agent from_agent_models from_hook headers hook_event_name images input_text input_tokens
    invoked_by is_error is_voice iteration kind label last_user_message level limit max_retries message messages model
    model_id name new_leaf_id new_max_iterations notification_level notification_message old_leaf_id output_tokens
    parent_session_id partial_result parts payload position preparation previous_level previous_max_iterations
    previous_model previous_session prompt queue reason recipe response response_text result retryable role sequence
    session_id skip_conversation_restore source started_at_ms status steering_messages stop_hook_active stop_response
    success suggestions summary summary_entry system_prompt target_session task task_id text timestamp to_agent
    tokens_before tool_category tool_error tool_input tool_name tool_response tool_results tool_use_id tools
    total_duration_ms turn_index turn_number usage used user_id will_retry workspace worktree_branch worktree_path
    worktree_source_dir
    """.split()
)


class Event(dict):
    """One event: a mapping whose keys are attributes too.

    A field of the catalogue that this event does not have is None. Any other name is a mistake and raises AttributeError.
    """

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            pass
        if name in _FIELDS:
            return None
        message = f"the event has no field {name!r}"
        if not name.startswith("_"):
            import difflib

            near = difflib.get_close_matches(name, _FIELDS.union(self), 1)
            if near:
                message += f"; did you mean {near[0]!r}?"
        raise AttributeError(message)


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
# The events of every `on(...)` call of that file that has not received a handler yet.
_open = []
# Set by the worker: raises if the script that registers a hook is loaded already.
_check_loading = None


def on(event=None, matcher=None, priority=0):
    """Registers a handler for an event, or for each of several.

    Use it as a decorator, `@on("stop")`, or pass the handler: `on("stop", handler)`. `matcher` is a name, names joined by bars, or a
    regular expression, for what the event is about: the tool's name. Handlers of a higher `priority` run first.
    """
    events = [event] if isinstance(event, str) else event
    if not isinstance(events, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in events):
        raise TypeError(f"on() got {event!r} as its event, expected the name of an event or a list of names")
    if not events:
        raise ValueError("on() got an empty list of events, expected at least one")
    events = list(events)
    handler = None
    if callable(matcher):
        handler, matcher = matcher, None
    if matcher is not None and not isinstance(matcher, str):
        raise TypeError(f"on({event!r}) got {matcher!r} as its matcher, expected a string")
    if not isinstance(priority, int):
        raise TypeError(
            f"on({event!r}) got {priority!r} as its priority, expected a whole number; "
            f"to register a handler with a matcher, write `@on({event!r}, matcher=...)` above it"
        )
    # Compared by identity: two calls for the same events are two calls.
    call = _Call(events)

    def register(handler):
        if not callable(handler):
            raise TypeError(f"@on({event!r}) stands before {handler!r}, which cannot be called")
        if _check_loading is not None:
            _check_loading()
        if call in _open:
            _open.remove(call)
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

    if handler is not None:
        return register(handler)
    _open.append(call)
    return register


class _Call:
    """One call of `on`."""

    def __init__(self, events):
        self.events = events


def _take():
    """Returns the hooks of a file that was loaded, and forgets them. Raises if `on(...)` was called without a handler."""
    taken = list(_hooks)
    left = [call.events for call in _open]
    _hooks.clear()
    _open.clear()
    if left:
        event = left[0][0]
        raise TypeError(f"on({event!r}) has no handler; write `@on({event!r})` above a function, or `on({event!r}, handler)`")
    return taken
