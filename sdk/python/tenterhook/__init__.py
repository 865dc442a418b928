"""Hooks for AI agents, in Python.

    from tenterhook import deny, on

    @on("pre_tool_use", matcher="shell")
    def no_sudo(event):
        if event.tool_input.get("cmd", "").startswith("sudo "):
            return deny("no sudo here")

A handler receives one event and returns nothing, one effect, or several effects joined with `|`. It may be a
coroutine function, and should be one if it waits for something. The event catalogue in Tenterhook's documentation
lists all events and the effects that each event honours.
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


# The fields of all events in the catalogue. A test of the host checks that the list is complete.
_FIELDS = frozenset(
    """
    account agent agent_name agent_switch_kind approval_decision approval_source attempt audio_formats blocked
    branch_entries budget busy by channel_id channel_ids chat_id child_session_id class code command compaction_entry
    compaction_reason context_limit cost custom_instructions cwd decision default_directory delta duration_ms entry_id
    error event event_id exclude_from_context extra from_agent from_agent_models from_hook headers hook_event_name
    images in_reply_to input_text input_tokens invoked_by is_direct is_error is_voice iteration kind label
    last_user_message level limit max_retries message message_id message_ids messages model model_id name new_leaf_id
    new_max_iterations notification_level notification_message old_leaf_id origin_extra output_tokens
    parent_session_id partial_result parts payload position preparation previous_level previous_max_iterations
    previous_model previous_session prompt queue reason recipe reply_to response response_text result retryable role
    sender_name sequence session_id skip_conversation_restore source started_at_ms status steering_messages
    stop_hook_active stop_response stt_enabled success suggestions summary summary_entry system_prompt target_session
    task task_id text thread_id timestamp to_agent tokens_before tool_category tool_error tool_input tool_name
    tool_response tool_results tool_use_id tools total_duration_ms tts_enabled turn_index turn_number usage used
    user_id will_retry workspace worktree_branch worktree_path worktree_source_dir
    """.split()
)


# The events of the catalogue. A test of the host writes the list.
_EVENTS = frozenset(
    """
    session_directory_resolve session_start resources_discover session_before_switch session_switch session_before_fork
    session_fork session_before_tree session_tree session_info_change session_end pre_compact before_compaction
    compaction_start after_compaction compaction_failed user_input user_prompt_submit user_steering_submit
    user_followup_submit user_bash waiting_for_user queue_update before_agent_start agent_start agent_end stop
    agent_error max_iterations save_point agent_settled retry_start retry_end notification agent_switch
    session_limit_resume turn_start context before_llm_call tool_selection provider_request provider_response
    after_llm_call message_start message_update message_end turn_end tools_disabled tool_execution_start
    tool_execution_update tool_execution_end tool_input_transform tool_guard pre_tool_use permission_request
    permission_denied tool_approval_decision token_budget_exceeded tool_response_transform post_tool_use tool_error
    subagent_start subagent_stop model_select thinking_level_select gateway_start gateway_stop channel_connect
    channel_disconnect message_receive message_deliver message_send message_cancel gateway_error setup
    instructions_loaded elicitation elicitation_result teammate_idle task_created task_completed tool_batch_end
    config_change cwd_change file_change directory_added worktree_create worktree_remove interrupt prompt_expansion
    message_display pre_model_switch post_model_switch
    """.split()
)


def __getattr__(name):
    """Returns the type of an event, such as `PreToolUseEvent`.

    Only type checkers know the fields of each type. When a hook runs, all of them are `Event`.
    """
    if name.endswith("Event") and name[:1].isupper():
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name[: -len("Event")])
        if words[1:] in _EVENTS:
            return Event
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Event(dict):
    """One event: a mapping whose keys are also attributes.

    As an attribute, a field of the catalogue that this event lacks is None. Any other name raises AttributeError.
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
    """What a handler answers. `a | b` combines two effects. Of two permissions, the stronger one counts."""

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
    """Allows the operation without a question, unless another hook asks or denies."""
    return _permission("allow", None)


def ask(reason):
    """Leaves the decision to the user."""
    return _permission("ask", reason)


def deny(reason):
    """Denies the operation. The model sees the reason."""
    return _permission("deny", reason)


def block(reason):
    """Stops the operation."""
    return Effect(block=str(reason))


def patch(**fields):
    """Changes fields of the event, for example `patch(tool_input={"cmd": "ls"})`."""
    return Effect(rewrite=fields)


def context(text):
    """Adds text for the model."""
    return Effect(context=[str(text)])


def follow_up(text):
    """Adds a user message that keeps the agent working."""
    return Effect(follow_up=[str(text)])


def notice(text):
    """Adds a notice for the user. The model does not see it."""
    return Effect(notices=[str(text)])


def stop_run(reason):
    """Ends the agent's run after this step."""
    return Effect(stop_run=str(reason))


def handled():
    """Declares that the hook did the work itself, so the agent must not do it."""
    return Effect(handled=True)


# The hooks of the file that is being loaded, in the order of their registration.
_hooks = []
# The events of every `on(...)` call in that file that has not received a handler yet.
_open = []
# Set by the worker. Raises if the script that registers a hook has already been loaded.
_check_loading = None


def on(event=None, matcher=None, priority=0):
    """Registers a handler for one event or for several events.

    Use it as a decorator, `@on("stop")`, or pass the handler: `on("stop", handler)`. `matcher` selects events by their
    subject, which is the tool's name for tool calls. It is a name, several names separated by `|`, or a regular
    expression. Handlers with a higher `priority` run first.
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
    # Compared by identity, because two calls with the same events are still two calls.
    call = _Call(events)

    def register(handler):
        if not callable(handler):
            raise TypeError(f"@on({event!r}) is followed by {handler!r}, which is not a function")
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
    """Returns and forgets the hooks of a file that was loaded. Raises if an `on(...)` call has no handler."""
    taken = list(_hooks)
    left = [call.events for call in _open]
    _hooks.clear()
    _open.clear()
    if left:
        event = left[0][0]
        raise TypeError(f"on({event!r}) has no handler; write `@on({event!r})` above a function, or `on({event!r}, handler)`")
    return taken
