# The types of the module. Handlers are checked against the fields of their event:
#
#     from tenterhook import PreToolUseEvent, on
#
#     @on("pre_tool_use")
#     def guard(event: PreToolUseEvent):
#         print(event.tool_name)

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Optional, TypedDict, TypeVar, Union, overload

class Effect(dict[str, Any]):
    """What a handler answers. `a | b` combines two effects. Of two permissions, the stronger one counts."""

    def __or__(self, other: "Effect") -> "Effect": ...  # type: ignore[override]

def allow() -> Effect:
    """Allows the operation without a question, unless another hook asks or denies."""

def ask(reason: str) -> Effect:
    """Leaves the decision to the user."""

def deny(reason: str) -> Effect:
    """Denies the operation. The model sees the reason."""

def block(reason: str) -> Effect:
    """Stops the operation."""

def patch(**fields: Any) -> Effect:
    """Changes fields of the event, for example `patch(tool_input={"cmd": "ls"})`."""

def context(text: str) -> Effect:
    """Adds text for the model."""

def follow_up(text: str) -> Effect:
    """Adds a user message that keeps the agent working."""

def notice(text: str) -> Effect:
    """Adds a notice for the user. The model does not see it."""

def stop_run(reason: str) -> Effect:
    """Ends the agent's run after this step."""

def handled() -> Effect:
    """Declares that the hook did the work itself, so the agent must not do it."""

class Event(dict[str, Any]):
    """One event: a mapping whose keys are also attributes. Its subclasses have the fields of each event."""

    hook_event_name: str
    event_id: str
    sequence: int
    timestamp: str
    session_id: str
    cwd: str
    invoked_by: str
    agent_name: Optional[str]
    parent_agent_id: Optional[str]
    workspace: Optional[str]
    recipe: Optional[str]
    extra: Optional[dict[str, Any]]
    origin_extra: Optional[dict[str, Any]]

_E = TypeVar("_E", bound=Event)
_Answer = Union[Effect, Mapping[str, Any], None]
_Handler = Callable[[_E], Union[_Answer, Awaitable[_Answer]]]

# generated: the types of events, from the crate `reference`

class _AgentModel(TypedDict, total=False):
    provider: str
    model: str
    base_url: str
    unload_api: str

class _CompactionPreparation(TypedDict, total=False):
    messages_to_summarize: list[_Message]
    first_kept_entry_id: str
    tokens_before: int
    previous_summary: str

class _ContentBlock(TypedDict, total=False):
    type: str
    text: str
    image: _Image

class _Image(TypedDict, total=False):
    media_type: str
    data: str

class _Message(TypedDict, total=False):
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    reasoning: str
    images: list[_Image]
    parts: list[_ContentBlock]
    tool_calls: list[_ToolCall]
    tool_call_id: str
    is_error: bool

class _MessagePart(TypedDict, total=False):
    kind: str
    text: str
    media_type: str
    data: str
    metadata: dict[str, Any]

class _SessionEntry(TypedDict, total=False):
    id: str
    parent_id: str
    time: str
    kind: str
    message: _Message
    data: Any

class _ToolCall(TypedDict, total=False):
    id: str
    name: str
    arguments: Any

class _ToolResult(TypedDict, total=False):
    content: list[_ContentBlock]
    details: dict[str, Any]
    is_error: bool
    terminate: bool

class _TreePreparation(TypedDict, total=False):
    target_id: str
    old_leaf_id: str
    common_ancestor_id: str
    entries_to_summarize: list[_SessionEntry]
    user_wants_summary: bool
    custom_instructions: str
    replace_instructions: bool
    label: str

class _Usage(TypedDict, total=False):
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    cached_write_tokens: int
    reasoning_tokens: int

class SessionDirectoryResolveEvent(Event):
    """Fires when the host determines the directory in which it stores sessions."""

    default_directory: str

class SessionStartEvent(Event):
    """Fires when a session has begun."""

    source: Literal["startup", "resume", "new", "fork", "clear", "compact", "reload"]
    previous_session: Optional[str]

class ResourcesDiscoverEvent(Event):
    """Fires when the host looks for skills, prompts and themes."""

    reason: Literal["startup", "reload"]

class SessionBeforeSwitchEvent(Event):
    """Fires before another session replaces this one."""

    reason: Literal["new", "resume"]
    target_session: Optional[str]

class SessionSwitchEvent(Event):
    """Fires when another session has replaced this one."""

    reason: Literal["new", "resume"]
    previous_session: Optional[str]

class SessionBeforeForkEvent(Event):
    """Fires before the session is forked."""

    entry_id: str
    position: Literal["before", "at"]
    skip_conversation_restore: Optional[bool]

class SessionForkEvent(Event):
    """Fires when the session has been forked."""

    entry_id: str
    previous_session: Optional[str]

class SessionBeforeTreeEvent(Event):
    """Fires before the user moves to another entry of the session's tree."""

    preparation: _TreePreparation

class SessionTreeEvent(Event):
    """Fires when the session has moved to another entry of its tree."""

    new_leaf_id: str
    old_leaf_id: Optional[str]
    summary_entry: Optional[_SessionEntry]
    from_hook: Optional[bool]

class SessionInfoChangeEvent(Event):
    """Fires when the session's name has changed."""

    name: str

class SessionEndEvent(Event):
    """Fires when the session ends."""

    reason: Literal["quit", "new", "resume", "fork", "reload", "clear", "error"]
    target_session: Optional[str]

class PreCompactEvent(Event):
    """Fires as the first step of every compaction."""

    source: Literal["manual", "auto", "overflow", "tool_overflow"]
    custom_instructions: Optional[str]

class BeforeCompactionEvent(Event):
    """Fires just before the summary is written."""

    preparation: Optional[_CompactionPreparation]
    branch_entries: Optional[list[_SessionEntry]]
    custom_instructions: Optional[str]
    input_tokens: Optional[int]
    output_tokens: Optional[int]
    context_limit: Optional[int]
    reason: Literal["threshold", "overflow", "manual"]

class CompactionStartEvent(Event):
    """Fires when the host starts to write the summary."""

    tokens_before: int

class AfterCompactionEvent(Event):
    """Fires when a summary has replaced the conversation."""

    compaction_entry: Optional[_SessionEntry]
    summary: str
    from_hook: Optional[bool]
    reason: Literal["threshold", "overflow", "manual"]
    input_tokens: Optional[int]
    output_tokens: Optional[int]
    context_limit: Optional[int]

class CompactionFailedEvent(Event):
    """Fires when a compaction has failed."""

    error: str

class UserInputEvent(Event):
    """Fires when an input arrives, before commands and templates are expanded."""

    text: str
    images: Optional[list[_Image]]
    source: Optional[Literal["interactive", "rpc", "extension", "cron", "subagent", "goal", "channel"]]

class UserPromptSubmitEvent(Event):
    """Fires when a user message has been recorded, before it is sent to the model."""

    prompt: str

class UserSteeringSubmitEvent(Event):
    """Fires before messages of the steering queue are sent to the model."""

    messages: list[str]

class UserFollowupSubmitEvent(Event):
    """Fires before a queued follow-up is sent to the model."""

    prompt: str

class UserBashEvent(Event):
    """Fires when the user runs a shell command themselves."""

    command: str
    exclude_from_context: Optional[bool]
    cwd: str

class WaitingForUserEvent(Event):
    """Fires when the agent starts to wait for the user."""

    reason: Optional[Literal["tool_approval", "question", "max_iterations", "idle"]]

class QueueUpdateEvent(Event):
    """Fires when a message was added to a queue or removed from one."""

    queue: Literal["steering", "follow_up"]
    message: Optional[str]
    messages: list[str]

class BeforeAgentStartEvent(Event):
    """Fires just before a run starts."""

    prompt: str
    images: Optional[list[_Image]]
    system_prompt: Optional[str]

class AgentStartEvent(Event):
    """Fires when a run has started."""

class AgentEndEvent(Event):
    """Fires when a run has ended."""

    messages: list[_Message]
    reason: Optional[Literal["completed", "aborted", "error"]]

class StopEvent(Event):
    """Fires when the model finishes without asking for a tool."""

    messages: Optional[list[_Message]]
    response: Optional[str]
    last_user_message: Optional[str]
    stop_hook_active: Optional[bool]

class AgentErrorEvent(Event):
    """Fires when an error occurs that the agent cannot recover from."""

    error: str
    retryable: Optional[bool]

class MaxIterationsEvent(Event):
    """Fires when the run reaches the iteration limit."""

    limit: int

class SavePointEvent(Event):
    """Fires when the session has been saved."""

class AgentSettledEvent(Event):
    """Fires when the agent is done and no messages are queued."""

class RetryStartEvent(Event):
    """Fires before a failed model call is retried."""

    attempt: int
    max_retries: int

class RetryEndEvent(Event):
    """Fires when a retry has ended."""

    attempt: int
    success: bool
    error: Optional[str]

class NotificationEvent(Event):
    """Fires when there is something that the user may want to know."""

    level: Literal["info", "warning", "error"]
    message: str
    kind: Optional[str]

class AgentSwitchEvent(Event):
    """Fires when another agent takes over."""

    from_agent: str
    to_agent: str
    kind: str
    from_agent_models: Optional[list[_AgentModel]]

class SessionLimitResumeEvent(Event):
    """Fires when the user lets the agent continue past the iteration limit."""

    previous_max_iterations: int
    new_max_iterations: int

class TurnStartEvent(Event):
    """Fires when a turn starts."""

    turn_index: Optional[int]
    started_at_ms: Optional[int]

class ContextEvent(Event):
    """Fires when the messages for the model have been assembled."""

    messages: list[_Message]

class BeforeLlmCallEvent(Event):
    """Fires just before a model call."""

    model_id: Optional[str]
    iteration: Optional[int]
    messages: Optional[list[_Message]]

class ToolSelectionEvent(Event):
    """Fires when the host chooses the tools to offer to the model."""

    tools: list[str]

class ProviderRequestEvent(Event):
    """Fires before a request is sent to the provider, in the provider's own format."""

    payload: Any

class ProviderResponseEvent(Event):
    """Fires when the provider has answered."""

    status: int
    headers: dict[str, Any]

class AfterLlmCallEvent(Event):
    """Fires when a model call has succeeded, before its answer is stored."""

    model_id: Optional[str]
    response: Optional[str]
    last_user_message: Optional[str]
    usage: Optional[_Usage]
    cost: Optional[float]

class MessageStartEvent(Event):
    """Fires when a message begins."""

    message: _Message

class MessageUpdateEvent(Event):
    """Fires when text is added to a message."""

    message: _Message
    delta: str

class MessageEndEvent(Event):
    """Fires when a message is complete, before it is stored."""

    message: _Message

class TurnEndEvent(Event):
    """Fires when a turn has ended, for whatever reason."""

    turn_index: Optional[int]
    turn_number: Optional[int]
    message: Optional[_Message]
    response: Optional[str]
    tool_results: Optional[list[_ToolResult]]
    reason: Optional[Literal["normal", "continue", "steered", "error", "cancelled", "hook_blocked", "loop_detected"]]

class ToolsDisabledEvent(Event):
    """Fires when the model asks for a tool that is not available to this agent."""

    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]

class ToolExecutionStartEvent(Event):
    """Fires when the model has asked for a tool call."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]

class ToolExecutionUpdateEvent(Event):
    """Fires when a running tool reports a partial result."""

    tool_use_id: Optional[str]
    tool_name: str
    partial_result: _ToolResult

class ToolExecutionEndEvent(Event):
    """Fires when a tool call is over, whether it ran or not."""

    tool_use_id: Optional[str]
    tool_name: str
    result: _ToolResult
    is_error: Optional[bool]

class ToolInputTransformEvent(Event):
    """Fires before anything judges a tool call."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]

class ToolGuardEvent(Event):
    """Fires before a tool may run, with the final arguments."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]

class PreToolUseEvent(Event):
    """Fires before a tool runs."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]

class PermissionRequestEvent(Event):
    """Fires before the user is asked for approval."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]
    suggestions: Optional[list[str]]

class PermissionDeniedEvent(Event):
    """Fires when a tool call was denied."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]
    reason: Optional[str]
    by: Optional[Literal["user", "rule", "hook"]]

class ToolApprovalDecisionEvent(Event):
    """Fires when it is decided whether a tool call runs."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]
    decision: Optional[Literal["allow", "deny", "cancelled"]]
    source: Optional[str]

class TokenBudgetExceededEvent(Event):
    """Fires when the token budget does not allow another tool call."""

    tool_name: str
    tool_input: dict[str, Any]
    budget: int
    used: int

class ToolResponseTransformEvent(Event):
    """Fires when a tool has returned or its call was denied."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]
    tool_response: Optional[str]
    is_error: Optional[bool]

class PostToolUseEvent(Event):
    """Fires after a tool ran, or after its call was denied (`blocked`)."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]
    result: Optional[_ToolResult]
    duration_ms: Optional[int]
    total_duration_ms: Optional[int]
    blocked: Optional[bool]

class ToolErrorEvent(Event):
    """Fires when an attempt to run a tool has failed, before `post_tool_use`."""

    tool_use_id: Optional[str]
    tool_name: str
    tool_input: dict[str, Any]
    role: Optional[str]
    attempt: Optional[int]
    tool_category: Optional[str]
    error: Optional[str]
    will_retry: Optional[bool]

class SubagentStartEvent(Event):
    """Fires when a subagent has been given a task."""

    task_id: str
    label: str
    task: Optional[str]

class SubagentStopEvent(Event):
    """Fires when a subagent has finished its task."""

    task_id: str
    label: str
    task: Optional[str]
    status: Optional[Literal["completed", "failed", "cancelled"]]
    result: Optional[str]
    child_session_id: str
    parent_session_id: str

class ModelSelectEvent(Event):
    """Fires when another model has been selected."""

    model: str
    previous_model: Optional[str]
    source: Optional[Literal["set", "cycle", "restore"]]

class ThinkingLevelSelectEvent(Event):
    """Fires when another thinking level has been selected."""

    level: str
    previous_level: Optional[str]

class GatewayStartEvent(Event):
    """Fires when the gateway has started."""

    channel_ids: list[str]

class GatewayStopEvent(Event):
    """Fires before the gateway cancels what its channels do."""

    channel_ids: list[str]
    reason: Optional[Literal["shutdown", "failed"]]

class ChannelConnectEvent(Event):
    """Fires before a channel connects."""

    channel_id: str
    kind: Optional[str]
    account: Optional[str]

class ChannelDisconnectEvent(Event):
    """Fires when a channel has disconnected."""

    channel_id: str
    reason: Optional[Literal["shutdown", "failed", "removed"]]

class MessageReceiveEvent(Event):
    """Fires when a message has arrived, also while the agent works."""

    channel_id: str
    chat_id: Optional[str]
    user_id: Optional[str]
    text: Optional[str]
    parts: Optional[list[_MessagePart]]
    message_id: Optional[str]
    thread_id: Optional[str]
    reply_to: Optional[str]
    is_direct: Optional[bool]
    is_voice: Optional[bool]
    role: Optional[Literal["owner", "member", "guest"]]
    busy: Optional[bool]
    sender_name: Optional[str]
    stt_enabled: Optional[bool]

class MessageDeliverEvent(Event):
    """Fires before anything visible leaves the gateway: answers, text before tool calls, what hooks and tools send,
        errors, and output of commands."""

    channel_id: str
    chat_id: Optional[str]
    user_id: Optional[str]
    kind: Optional[Literal["answer", "intermediate", "extra", "error", "command"]]
    text: Optional[str]
    parts: Optional[list[_MessagePart]]
    in_reply_to: Optional[list[str]]

class MessageSendEvent(Event):
    """Fires once for each turn, after its last text was delivered."""

    channel_id: str
    chat_id: Optional[str]
    input_text: Optional[str]
    response_text: Optional[str]
    is_voice: Optional[bool]
    message_ids: Optional[list[str]]
    user_id: Optional[str]
    is_error: Optional[bool]
    tts_enabled: Optional[bool]
    audio_formats: Optional[list[str]]

class MessageCancelEvent(Event):
    """Fires when an answer was cancelled."""

    channel_id: str
    chat_id: Optional[str]
    user_id: Optional[str]
    reason: Optional[Literal["user", "interrupt", "shutdown"]]

class GatewayErrorEvent(Event):
    """Fires when a channel, or the answer to a message, has failed."""

    channel_id: str
    error: str
    chat_id: Optional[str]
    message_id: Optional[str]
    code: Optional[str]
    will_retry: Optional[bool]

class SetupEvent(Event):
    """Fires when an agent sets up a project."""

class InstructionsLoadedEvent(Event):
    """Fires when instruction files have been loaded."""

class ElicitationEvent(Event):
    """Fires when a tool server asks the user for something."""

class ElicitationResultEvent(Event):
    """Fires when the user has answered a tool server."""

class TeammateIdleEvent(Event):
    """Fires when a teammate has nothing to do."""

class TaskCreatedEvent(Event):
    """Fires when a task is created."""

class TaskCompletedEvent(Event):
    """Fires before a task is marked as completed."""

class ToolBatchEndEvent(Event):
    """Fires when all tool calls of one model answer are over."""

class ConfigChangeEvent(Event):
    """Fires before a configuration file changes."""

class CwdChangeEvent(Event):
    """Fires when the working directory has changed."""

class FileChangeEvent(Event):
    """Fires when a watched file has changed."""

class DirectoryAddedEvent(Event):
    """Fires when a directory has been added to the workspace."""

class WorktreeCreateEvent(Event):
    """Fires before a worktree is created."""

class WorktreeRemoveEvent(Event):
    """Fires when a worktree is removed."""

class InterruptEvent(Event):
    """Fires when the user has interrupted the agent."""

class PromptExpansionEvent(Event):
    """Fires before a command is expanded to a prompt."""

class MessageDisplayEvent(Event):
    """Fires when a message is shown to the user."""

class PreModelSwitchEvent(Event):
    """Fires before another model is selected."""

class PostModelSwitchEvent(Event):
    """Fires when another model has been selected."""

@overload
def on(
    event: Literal["session_directory_resolve"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionDirectoryResolveEvent]], _Handler[SessionDirectoryResolveEvent]]: ...

@overload
def on(
    event: Literal["session_directory_resolve"], matcher: _Handler[SessionDirectoryResolveEvent]
) -> _Handler[SessionDirectoryResolveEvent]: ...

@overload
def on(
    event: Literal["session_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionStartEvent]], _Handler[SessionStartEvent]]: ...

@overload
def on(
    event: Literal["session_start"], matcher: _Handler[SessionStartEvent]
) -> _Handler[SessionStartEvent]: ...

@overload
def on(
    event: Literal["resources_discover"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ResourcesDiscoverEvent]], _Handler[ResourcesDiscoverEvent]]: ...

@overload
def on(
    event: Literal["resources_discover"], matcher: _Handler[ResourcesDiscoverEvent]
) -> _Handler[ResourcesDiscoverEvent]: ...

@overload
def on(
    event: Literal["session_before_switch"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionBeforeSwitchEvent]], _Handler[SessionBeforeSwitchEvent]]: ...

@overload
def on(
    event: Literal["session_before_switch"], matcher: _Handler[SessionBeforeSwitchEvent]
) -> _Handler[SessionBeforeSwitchEvent]: ...

@overload
def on(
    event: Literal["session_switch"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionSwitchEvent]], _Handler[SessionSwitchEvent]]: ...

@overload
def on(
    event: Literal["session_switch"], matcher: _Handler[SessionSwitchEvent]
) -> _Handler[SessionSwitchEvent]: ...

@overload
def on(
    event: Literal["session_before_fork"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionBeforeForkEvent]], _Handler[SessionBeforeForkEvent]]: ...

@overload
def on(
    event: Literal["session_before_fork"], matcher: _Handler[SessionBeforeForkEvent]
) -> _Handler[SessionBeforeForkEvent]: ...

@overload
def on(
    event: Literal["session_fork"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionForkEvent]], _Handler[SessionForkEvent]]: ...

@overload
def on(
    event: Literal["session_fork"], matcher: _Handler[SessionForkEvent]
) -> _Handler[SessionForkEvent]: ...

@overload
def on(
    event: Literal["session_before_tree"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionBeforeTreeEvent]], _Handler[SessionBeforeTreeEvent]]: ...

@overload
def on(
    event: Literal["session_before_tree"], matcher: _Handler[SessionBeforeTreeEvent]
) -> _Handler[SessionBeforeTreeEvent]: ...

@overload
def on(
    event: Literal["session_tree"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionTreeEvent]], _Handler[SessionTreeEvent]]: ...

@overload
def on(
    event: Literal["session_tree"], matcher: _Handler[SessionTreeEvent]
) -> _Handler[SessionTreeEvent]: ...

@overload
def on(
    event: Literal["session_info_change"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionInfoChangeEvent]], _Handler[SessionInfoChangeEvent]]: ...

@overload
def on(
    event: Literal["session_info_change"], matcher: _Handler[SessionInfoChangeEvent]
) -> _Handler[SessionInfoChangeEvent]: ...

@overload
def on(
    event: Literal["session_end"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionEndEvent]], _Handler[SessionEndEvent]]: ...

@overload
def on(
    event: Literal["session_end"], matcher: _Handler[SessionEndEvent]
) -> _Handler[SessionEndEvent]: ...

@overload
def on(
    event: Literal["pre_compact"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PreCompactEvent]], _Handler[PreCompactEvent]]: ...

@overload
def on(
    event: Literal["pre_compact"], matcher: _Handler[PreCompactEvent]
) -> _Handler[PreCompactEvent]: ...

@overload
def on(
    event: Literal["before_compaction"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[BeforeCompactionEvent]], _Handler[BeforeCompactionEvent]]: ...

@overload
def on(
    event: Literal["before_compaction"], matcher: _Handler[BeforeCompactionEvent]
) -> _Handler[BeforeCompactionEvent]: ...

@overload
def on(
    event: Literal["compaction_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[CompactionStartEvent]], _Handler[CompactionStartEvent]]: ...

@overload
def on(
    event: Literal["compaction_start"], matcher: _Handler[CompactionStartEvent]
) -> _Handler[CompactionStartEvent]: ...

@overload
def on(
    event: Literal["after_compaction"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[AfterCompactionEvent]], _Handler[AfterCompactionEvent]]: ...

@overload
def on(
    event: Literal["after_compaction"], matcher: _Handler[AfterCompactionEvent]
) -> _Handler[AfterCompactionEvent]: ...

@overload
def on(
    event: Literal["compaction_failed"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[CompactionFailedEvent]], _Handler[CompactionFailedEvent]]: ...

@overload
def on(
    event: Literal["compaction_failed"], matcher: _Handler[CompactionFailedEvent]
) -> _Handler[CompactionFailedEvent]: ...

@overload
def on(
    event: Literal["user_input"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[UserInputEvent]], _Handler[UserInputEvent]]: ...

@overload
def on(
    event: Literal["user_input"], matcher: _Handler[UserInputEvent]
) -> _Handler[UserInputEvent]: ...

@overload
def on(
    event: Literal["user_prompt_submit"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[UserPromptSubmitEvent]], _Handler[UserPromptSubmitEvent]]: ...

@overload
def on(
    event: Literal["user_prompt_submit"], matcher: _Handler[UserPromptSubmitEvent]
) -> _Handler[UserPromptSubmitEvent]: ...

@overload
def on(
    event: Literal["user_steering_submit"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[UserSteeringSubmitEvent]], _Handler[UserSteeringSubmitEvent]]: ...

@overload
def on(
    event: Literal["user_steering_submit"], matcher: _Handler[UserSteeringSubmitEvent]
) -> _Handler[UserSteeringSubmitEvent]: ...

@overload
def on(
    event: Literal["user_followup_submit"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[UserFollowupSubmitEvent]], _Handler[UserFollowupSubmitEvent]]: ...

@overload
def on(
    event: Literal["user_followup_submit"], matcher: _Handler[UserFollowupSubmitEvent]
) -> _Handler[UserFollowupSubmitEvent]: ...

@overload
def on(
    event: Literal["user_bash"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[UserBashEvent]], _Handler[UserBashEvent]]: ...

@overload
def on(
    event: Literal["user_bash"], matcher: _Handler[UserBashEvent]
) -> _Handler[UserBashEvent]: ...

@overload
def on(
    event: Literal["waiting_for_user"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[WaitingForUserEvent]], _Handler[WaitingForUserEvent]]: ...

@overload
def on(
    event: Literal["waiting_for_user"], matcher: _Handler[WaitingForUserEvent]
) -> _Handler[WaitingForUserEvent]: ...

@overload
def on(
    event: Literal["queue_update"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[QueueUpdateEvent]], _Handler[QueueUpdateEvent]]: ...

@overload
def on(
    event: Literal["queue_update"], matcher: _Handler[QueueUpdateEvent]
) -> _Handler[QueueUpdateEvent]: ...

@overload
def on(
    event: Literal["before_agent_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[BeforeAgentStartEvent]], _Handler[BeforeAgentStartEvent]]: ...

@overload
def on(
    event: Literal["before_agent_start"], matcher: _Handler[BeforeAgentStartEvent]
) -> _Handler[BeforeAgentStartEvent]: ...

@overload
def on(
    event: Literal["agent_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[AgentStartEvent]], _Handler[AgentStartEvent]]: ...

@overload
def on(
    event: Literal["agent_start"], matcher: _Handler[AgentStartEvent]
) -> _Handler[AgentStartEvent]: ...

@overload
def on(
    event: Literal["agent_end"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[AgentEndEvent]], _Handler[AgentEndEvent]]: ...

@overload
def on(
    event: Literal["agent_end"], matcher: _Handler[AgentEndEvent]
) -> _Handler[AgentEndEvent]: ...

@overload
def on(
    event: Literal["stop"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[StopEvent]], _Handler[StopEvent]]: ...

@overload
def on(
    event: Literal["stop"], matcher: _Handler[StopEvent]
) -> _Handler[StopEvent]: ...

@overload
def on(
    event: Literal["agent_error"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[AgentErrorEvent]], _Handler[AgentErrorEvent]]: ...

@overload
def on(
    event: Literal["agent_error"], matcher: _Handler[AgentErrorEvent]
) -> _Handler[AgentErrorEvent]: ...

@overload
def on(
    event: Literal["max_iterations"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MaxIterationsEvent]], _Handler[MaxIterationsEvent]]: ...

@overload
def on(
    event: Literal["max_iterations"], matcher: _Handler[MaxIterationsEvent]
) -> _Handler[MaxIterationsEvent]: ...

@overload
def on(
    event: Literal["save_point"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SavePointEvent]], _Handler[SavePointEvent]]: ...

@overload
def on(
    event: Literal["save_point"], matcher: _Handler[SavePointEvent]
) -> _Handler[SavePointEvent]: ...

@overload
def on(
    event: Literal["agent_settled"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[AgentSettledEvent]], _Handler[AgentSettledEvent]]: ...

@overload
def on(
    event: Literal["agent_settled"], matcher: _Handler[AgentSettledEvent]
) -> _Handler[AgentSettledEvent]: ...

@overload
def on(
    event: Literal["retry_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[RetryStartEvent]], _Handler[RetryStartEvent]]: ...

@overload
def on(
    event: Literal["retry_start"], matcher: _Handler[RetryStartEvent]
) -> _Handler[RetryStartEvent]: ...

@overload
def on(
    event: Literal["retry_end"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[RetryEndEvent]], _Handler[RetryEndEvent]]: ...

@overload
def on(
    event: Literal["retry_end"], matcher: _Handler[RetryEndEvent]
) -> _Handler[RetryEndEvent]: ...

@overload
def on(
    event: Literal["notification"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[NotificationEvent]], _Handler[NotificationEvent]]: ...

@overload
def on(
    event: Literal["notification"], matcher: _Handler[NotificationEvent]
) -> _Handler[NotificationEvent]: ...

@overload
def on(
    event: Literal["agent_switch"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[AgentSwitchEvent]], _Handler[AgentSwitchEvent]]: ...

@overload
def on(
    event: Literal["agent_switch"], matcher: _Handler[AgentSwitchEvent]
) -> _Handler[AgentSwitchEvent]: ...

@overload
def on(
    event: Literal["session_limit_resume"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SessionLimitResumeEvent]], _Handler[SessionLimitResumeEvent]]: ...

@overload
def on(
    event: Literal["session_limit_resume"], matcher: _Handler[SessionLimitResumeEvent]
) -> _Handler[SessionLimitResumeEvent]: ...

@overload
def on(
    event: Literal["turn_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[TurnStartEvent]], _Handler[TurnStartEvent]]: ...

@overload
def on(
    event: Literal["turn_start"], matcher: _Handler[TurnStartEvent]
) -> _Handler[TurnStartEvent]: ...

@overload
def on(
    event: Literal["context"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ContextEvent]], _Handler[ContextEvent]]: ...

@overload
def on(
    event: Literal["context"], matcher: _Handler[ContextEvent]
) -> _Handler[ContextEvent]: ...

@overload
def on(
    event: Literal["before_llm_call"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[BeforeLlmCallEvent]], _Handler[BeforeLlmCallEvent]]: ...

@overload
def on(
    event: Literal["before_llm_call"], matcher: _Handler[BeforeLlmCallEvent]
) -> _Handler[BeforeLlmCallEvent]: ...

@overload
def on(
    event: Literal["tool_selection"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolSelectionEvent]], _Handler[ToolSelectionEvent]]: ...

@overload
def on(
    event: Literal["tool_selection"], matcher: _Handler[ToolSelectionEvent]
) -> _Handler[ToolSelectionEvent]: ...

@overload
def on(
    event: Literal["provider_request"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ProviderRequestEvent]], _Handler[ProviderRequestEvent]]: ...

@overload
def on(
    event: Literal["provider_request"], matcher: _Handler[ProviderRequestEvent]
) -> _Handler[ProviderRequestEvent]: ...

@overload
def on(
    event: Literal["provider_response"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ProviderResponseEvent]], _Handler[ProviderResponseEvent]]: ...

@overload
def on(
    event: Literal["provider_response"], matcher: _Handler[ProviderResponseEvent]
) -> _Handler[ProviderResponseEvent]: ...

@overload
def on(
    event: Literal["after_llm_call"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[AfterLlmCallEvent]], _Handler[AfterLlmCallEvent]]: ...

@overload
def on(
    event: Literal["after_llm_call"], matcher: _Handler[AfterLlmCallEvent]
) -> _Handler[AfterLlmCallEvent]: ...

@overload
def on(
    event: Literal["message_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageStartEvent]], _Handler[MessageStartEvent]]: ...

@overload
def on(
    event: Literal["message_start"], matcher: _Handler[MessageStartEvent]
) -> _Handler[MessageStartEvent]: ...

@overload
def on(
    event: Literal["message_update"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageUpdateEvent]], _Handler[MessageUpdateEvent]]: ...

@overload
def on(
    event: Literal["message_update"], matcher: _Handler[MessageUpdateEvent]
) -> _Handler[MessageUpdateEvent]: ...

@overload
def on(
    event: Literal["message_end"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageEndEvent]], _Handler[MessageEndEvent]]: ...

@overload
def on(
    event: Literal["message_end"], matcher: _Handler[MessageEndEvent]
) -> _Handler[MessageEndEvent]: ...

@overload
def on(
    event: Literal["turn_end"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[TurnEndEvent]], _Handler[TurnEndEvent]]: ...

@overload
def on(
    event: Literal["turn_end"], matcher: _Handler[TurnEndEvent]
) -> _Handler[TurnEndEvent]: ...

@overload
def on(
    event: Literal["tools_disabled"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolsDisabledEvent]], _Handler[ToolsDisabledEvent]]: ...

@overload
def on(
    event: Literal["tools_disabled"], matcher: _Handler[ToolsDisabledEvent]
) -> _Handler[ToolsDisabledEvent]: ...

@overload
def on(
    event: Literal["tool_execution_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolExecutionStartEvent]], _Handler[ToolExecutionStartEvent]]: ...

@overload
def on(
    event: Literal["tool_execution_start"], matcher: _Handler[ToolExecutionStartEvent]
) -> _Handler[ToolExecutionStartEvent]: ...

@overload
def on(
    event: Literal["tool_execution_update"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolExecutionUpdateEvent]], _Handler[ToolExecutionUpdateEvent]]: ...

@overload
def on(
    event: Literal["tool_execution_update"], matcher: _Handler[ToolExecutionUpdateEvent]
) -> _Handler[ToolExecutionUpdateEvent]: ...

@overload
def on(
    event: Literal["tool_execution_end"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolExecutionEndEvent]], _Handler[ToolExecutionEndEvent]]: ...

@overload
def on(
    event: Literal["tool_execution_end"], matcher: _Handler[ToolExecutionEndEvent]
) -> _Handler[ToolExecutionEndEvent]: ...

@overload
def on(
    event: Literal["tool_input_transform"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolInputTransformEvent]], _Handler[ToolInputTransformEvent]]: ...

@overload
def on(
    event: Literal["tool_input_transform"], matcher: _Handler[ToolInputTransformEvent]
) -> _Handler[ToolInputTransformEvent]: ...

@overload
def on(
    event: Literal["tool_guard"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolGuardEvent]], _Handler[ToolGuardEvent]]: ...

@overload
def on(
    event: Literal["tool_guard"], matcher: _Handler[ToolGuardEvent]
) -> _Handler[ToolGuardEvent]: ...

@overload
def on(
    event: Literal["pre_tool_use"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PreToolUseEvent]], _Handler[PreToolUseEvent]]: ...

@overload
def on(
    event: Literal["pre_tool_use"], matcher: _Handler[PreToolUseEvent]
) -> _Handler[PreToolUseEvent]: ...

@overload
def on(
    event: Literal["permission_request"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PermissionRequestEvent]], _Handler[PermissionRequestEvent]]: ...

@overload
def on(
    event: Literal["permission_request"], matcher: _Handler[PermissionRequestEvent]
) -> _Handler[PermissionRequestEvent]: ...

@overload
def on(
    event: Literal["permission_denied"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PermissionDeniedEvent]], _Handler[PermissionDeniedEvent]]: ...

@overload
def on(
    event: Literal["permission_denied"], matcher: _Handler[PermissionDeniedEvent]
) -> _Handler[PermissionDeniedEvent]: ...

@overload
def on(
    event: Literal["tool_approval_decision"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolApprovalDecisionEvent]], _Handler[ToolApprovalDecisionEvent]]: ...

@overload
def on(
    event: Literal["tool_approval_decision"], matcher: _Handler[ToolApprovalDecisionEvent]
) -> _Handler[ToolApprovalDecisionEvent]: ...

@overload
def on(
    event: Literal["token_budget_exceeded"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[TokenBudgetExceededEvent]], _Handler[TokenBudgetExceededEvent]]: ...

@overload
def on(
    event: Literal["token_budget_exceeded"], matcher: _Handler[TokenBudgetExceededEvent]
) -> _Handler[TokenBudgetExceededEvent]: ...

@overload
def on(
    event: Literal["tool_response_transform"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolResponseTransformEvent]], _Handler[ToolResponseTransformEvent]]: ...

@overload
def on(
    event: Literal["tool_response_transform"], matcher: _Handler[ToolResponseTransformEvent]
) -> _Handler[ToolResponseTransformEvent]: ...

@overload
def on(
    event: Literal["post_tool_use"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PostToolUseEvent]], _Handler[PostToolUseEvent]]: ...

@overload
def on(
    event: Literal["post_tool_use"], matcher: _Handler[PostToolUseEvent]
) -> _Handler[PostToolUseEvent]: ...

@overload
def on(
    event: Literal["tool_error"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolErrorEvent]], _Handler[ToolErrorEvent]]: ...

@overload
def on(
    event: Literal["tool_error"], matcher: _Handler[ToolErrorEvent]
) -> _Handler[ToolErrorEvent]: ...

@overload
def on(
    event: Literal["subagent_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SubagentStartEvent]], _Handler[SubagentStartEvent]]: ...

@overload
def on(
    event: Literal["subagent_start"], matcher: _Handler[SubagentStartEvent]
) -> _Handler[SubagentStartEvent]: ...

@overload
def on(
    event: Literal["subagent_stop"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SubagentStopEvent]], _Handler[SubagentStopEvent]]: ...

@overload
def on(
    event: Literal["subagent_stop"], matcher: _Handler[SubagentStopEvent]
) -> _Handler[SubagentStopEvent]: ...

@overload
def on(
    event: Literal["model_select"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ModelSelectEvent]], _Handler[ModelSelectEvent]]: ...

@overload
def on(
    event: Literal["model_select"], matcher: _Handler[ModelSelectEvent]
) -> _Handler[ModelSelectEvent]: ...

@overload
def on(
    event: Literal["thinking_level_select"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ThinkingLevelSelectEvent]], _Handler[ThinkingLevelSelectEvent]]: ...

@overload
def on(
    event: Literal["thinking_level_select"], matcher: _Handler[ThinkingLevelSelectEvent]
) -> _Handler[ThinkingLevelSelectEvent]: ...

@overload
def on(
    event: Literal["gateway_start"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[GatewayStartEvent]], _Handler[GatewayStartEvent]]: ...

@overload
def on(
    event: Literal["gateway_start"], matcher: _Handler[GatewayStartEvent]
) -> _Handler[GatewayStartEvent]: ...

@overload
def on(
    event: Literal["gateway_stop"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[GatewayStopEvent]], _Handler[GatewayStopEvent]]: ...

@overload
def on(
    event: Literal["gateway_stop"], matcher: _Handler[GatewayStopEvent]
) -> _Handler[GatewayStopEvent]: ...

@overload
def on(
    event: Literal["channel_connect"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ChannelConnectEvent]], _Handler[ChannelConnectEvent]]: ...

@overload
def on(
    event: Literal["channel_connect"], matcher: _Handler[ChannelConnectEvent]
) -> _Handler[ChannelConnectEvent]: ...

@overload
def on(
    event: Literal["channel_disconnect"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ChannelDisconnectEvent]], _Handler[ChannelDisconnectEvent]]: ...

@overload
def on(
    event: Literal["channel_disconnect"], matcher: _Handler[ChannelDisconnectEvent]
) -> _Handler[ChannelDisconnectEvent]: ...

@overload
def on(
    event: Literal["message_receive"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageReceiveEvent]], _Handler[MessageReceiveEvent]]: ...

@overload
def on(
    event: Literal["message_receive"], matcher: _Handler[MessageReceiveEvent]
) -> _Handler[MessageReceiveEvent]: ...

@overload
def on(
    event: Literal["message_deliver"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageDeliverEvent]], _Handler[MessageDeliverEvent]]: ...

@overload
def on(
    event: Literal["message_deliver"], matcher: _Handler[MessageDeliverEvent]
) -> _Handler[MessageDeliverEvent]: ...

@overload
def on(
    event: Literal["message_send"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageSendEvent]], _Handler[MessageSendEvent]]: ...

@overload
def on(
    event: Literal["message_send"], matcher: _Handler[MessageSendEvent]
) -> _Handler[MessageSendEvent]: ...

@overload
def on(
    event: Literal["message_cancel"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageCancelEvent]], _Handler[MessageCancelEvent]]: ...

@overload
def on(
    event: Literal["message_cancel"], matcher: _Handler[MessageCancelEvent]
) -> _Handler[MessageCancelEvent]: ...

@overload
def on(
    event: Literal["gateway_error"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[GatewayErrorEvent]], _Handler[GatewayErrorEvent]]: ...

@overload
def on(
    event: Literal["gateway_error"], matcher: _Handler[GatewayErrorEvent]
) -> _Handler[GatewayErrorEvent]: ...

@overload
def on(
    event: Literal["setup"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[SetupEvent]], _Handler[SetupEvent]]: ...

@overload
def on(
    event: Literal["setup"], matcher: _Handler[SetupEvent]
) -> _Handler[SetupEvent]: ...

@overload
def on(
    event: Literal["instructions_loaded"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[InstructionsLoadedEvent]], _Handler[InstructionsLoadedEvent]]: ...

@overload
def on(
    event: Literal["instructions_loaded"], matcher: _Handler[InstructionsLoadedEvent]
) -> _Handler[InstructionsLoadedEvent]: ...

@overload
def on(
    event: Literal["elicitation"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ElicitationEvent]], _Handler[ElicitationEvent]]: ...

@overload
def on(
    event: Literal["elicitation"], matcher: _Handler[ElicitationEvent]
) -> _Handler[ElicitationEvent]: ...

@overload
def on(
    event: Literal["elicitation_result"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ElicitationResultEvent]], _Handler[ElicitationResultEvent]]: ...

@overload
def on(
    event: Literal["elicitation_result"], matcher: _Handler[ElicitationResultEvent]
) -> _Handler[ElicitationResultEvent]: ...

@overload
def on(
    event: Literal["teammate_idle"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[TeammateIdleEvent]], _Handler[TeammateIdleEvent]]: ...

@overload
def on(
    event: Literal["teammate_idle"], matcher: _Handler[TeammateIdleEvent]
) -> _Handler[TeammateIdleEvent]: ...

@overload
def on(
    event: Literal["task_created"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[TaskCreatedEvent]], _Handler[TaskCreatedEvent]]: ...

@overload
def on(
    event: Literal["task_created"], matcher: _Handler[TaskCreatedEvent]
) -> _Handler[TaskCreatedEvent]: ...

@overload
def on(
    event: Literal["task_completed"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[TaskCompletedEvent]], _Handler[TaskCompletedEvent]]: ...

@overload
def on(
    event: Literal["task_completed"], matcher: _Handler[TaskCompletedEvent]
) -> _Handler[TaskCompletedEvent]: ...

@overload
def on(
    event: Literal["tool_batch_end"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ToolBatchEndEvent]], _Handler[ToolBatchEndEvent]]: ...

@overload
def on(
    event: Literal["tool_batch_end"], matcher: _Handler[ToolBatchEndEvent]
) -> _Handler[ToolBatchEndEvent]: ...

@overload
def on(
    event: Literal["config_change"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[ConfigChangeEvent]], _Handler[ConfigChangeEvent]]: ...

@overload
def on(
    event: Literal["config_change"], matcher: _Handler[ConfigChangeEvent]
) -> _Handler[ConfigChangeEvent]: ...

@overload
def on(
    event: Literal["cwd_change"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[CwdChangeEvent]], _Handler[CwdChangeEvent]]: ...

@overload
def on(
    event: Literal["cwd_change"], matcher: _Handler[CwdChangeEvent]
) -> _Handler[CwdChangeEvent]: ...

@overload
def on(
    event: Literal["file_change"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[FileChangeEvent]], _Handler[FileChangeEvent]]: ...

@overload
def on(
    event: Literal["file_change"], matcher: _Handler[FileChangeEvent]
) -> _Handler[FileChangeEvent]: ...

@overload
def on(
    event: Literal["directory_added"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[DirectoryAddedEvent]], _Handler[DirectoryAddedEvent]]: ...

@overload
def on(
    event: Literal["directory_added"], matcher: _Handler[DirectoryAddedEvent]
) -> _Handler[DirectoryAddedEvent]: ...

@overload
def on(
    event: Literal["worktree_create"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[WorktreeCreateEvent]], _Handler[WorktreeCreateEvent]]: ...

@overload
def on(
    event: Literal["worktree_create"], matcher: _Handler[WorktreeCreateEvent]
) -> _Handler[WorktreeCreateEvent]: ...

@overload
def on(
    event: Literal["worktree_remove"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[WorktreeRemoveEvent]], _Handler[WorktreeRemoveEvent]]: ...

@overload
def on(
    event: Literal["worktree_remove"], matcher: _Handler[WorktreeRemoveEvent]
) -> _Handler[WorktreeRemoveEvent]: ...

@overload
def on(
    event: Literal["interrupt"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[InterruptEvent]], _Handler[InterruptEvent]]: ...

@overload
def on(
    event: Literal["interrupt"], matcher: _Handler[InterruptEvent]
) -> _Handler[InterruptEvent]: ...

@overload
def on(
    event: Literal["prompt_expansion"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PromptExpansionEvent]], _Handler[PromptExpansionEvent]]: ...

@overload
def on(
    event: Literal["prompt_expansion"], matcher: _Handler[PromptExpansionEvent]
) -> _Handler[PromptExpansionEvent]: ...

@overload
def on(
    event: Literal["message_display"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[MessageDisplayEvent]], _Handler[MessageDisplayEvent]]: ...

@overload
def on(
    event: Literal["message_display"], matcher: _Handler[MessageDisplayEvent]
) -> _Handler[MessageDisplayEvent]: ...

@overload
def on(
    event: Literal["pre_model_switch"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PreModelSwitchEvent]], _Handler[PreModelSwitchEvent]]: ...

@overload
def on(
    event: Literal["pre_model_switch"], matcher: _Handler[PreModelSwitchEvent]
) -> _Handler[PreModelSwitchEvent]: ...

@overload
def on(
    event: Literal["post_model_switch"], matcher: Optional[str] = ..., priority: int = ...
) -> Callable[[_Handler[PostModelSwitchEvent]], _Handler[PostModelSwitchEvent]]: ...

@overload
def on(
    event: Literal["post_model_switch"], matcher: _Handler[PostModelSwitchEvent]
) -> _Handler[PostModelSwitchEvent]: ...

# end of the generated types

# Several events, and events that are not in the catalogue.
@overload
def on(
    event: Union[str, list[str], tuple[str, ...], set[str], frozenset[str]],
    matcher: Optional[str] = ...,
    priority: int = ...,
) -> Callable[[_Handler[Any]], _Handler[Any]]: ...
@overload
def on(
    event: Union[str, list[str], tuple[str, ...], set[str], frozenset[str]],
    matcher: _Handler[Any],
) -> _Handler[Any]: ...
