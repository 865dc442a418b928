/** What a handler answers. */
export class Effect {
  constructor(parts: Record<string, unknown>);
  [key: string]: unknown;
}

/** An event that is not in the catalogue, or one of several events. */
export type Event = Record<string, any>;

/** The fields that every event of the catalogue has. */
export interface SharedFields {
  /** The name of the event. */
  hook_event_name: string;
  event_id: string;
  /** The position among the events of the session, starting at 1. */
  sequence: number;
  timestamp: string;
  session_id: string;
  /** The directory of the session. */
  cwd: string;
  /** What started the agent. */
  invoked_by: string;
  agent_name?: string;
  parent_agent_id?: string;
  workspace?: string;
  recipe?: string;
  /** Values that the host added to the event. */
  extra?: Record<string, any>;
  /** Values that the host added to all events of the session. */
  origin_extra?: Record<string, any>;
}

// generated: the types of events, from the crate `reference`

/** A model that is configured for an agent. */
export interface AgentModel {
  /** The provider, such as `openai` or `dmr`. */
  provider: string;
  /** The provider's name for the model. */
  model: string;
  /** The base URL of the provider, if one is configured. */
  base_url?: string;
  /** The endpoint that unloads the model from the provider's memory: a URL, or a path on the provider's host. */
  unload_api?: string;
}

/** What a compaction is about to do. */
export interface CompactionPreparation {
  /** The messages that the summary will replace. */
  messages_to_summarize?: Message[];
  /** The first entry that is kept unchanged. */
  first_kept_entry_id?: string;
  /** The size of the context, in tokens. */
  tokens_before?: number;
  /** The summary of the previous compaction, if there was one. */
  previous_summary?: string;
}

/** One piece of a tool result or of a message. */
export interface ContentBlock {
  /** What the block is: `text`, `image` or another word. */
  type: string;
  /** The text of a `text` block. */
  text?: string;
  /** The image of an `image` block. */
  image?: Image;
}

/** An image in a message. */
export interface Image {
  /** The media type, such as `image/png`. */
  media_type: string;
  /** The image data in base64. */
  data: string;
}

/** One message of a conversation. */
export interface Message {
  /** The author of the message. */
  role: "user" | "assistant" | "system" | "tool";
  /** The text. */
  content?: string;
  /** The reasoning that the model wrote, if the provider exposes it. */
  reasoning?: string;
  /** Images that came with the text. */
  images?: Image[];
  /** Content after the text and the images, in order. */
  parts?: ContentBlock[];
  /** Tool calls that the model requests. */
  tool_calls?: ToolCall[];
  /** In a tool message: the call that it answers. */
  tool_call_id?: string;
  /** In a tool message: whether the call failed. */
  is_error?: boolean;
}

/** One part of a message in a channel. */
export interface MessagePart {
  /** The type of the part: `text`, `audio`, `image`, `file` …. */
  kind: string;
  /** The text, if the part is text. */
  text?: string;
  /** The media type, such as `audio/ogg`. */
  media_type?: string;
  /** The content in base64, or the location of the content. */
  data?: string;
  /** Other data about the part that the channel provides. */
  metadata: Record<string, any>;
}

/** One entry of a session's tree. */
export interface SessionEntry {
  /** The id of the entry. */
  id: string;
  /** The id of the entry before it. */
  parent_id?: string;
  /** When the entry was created, if known. */
  time?: string;
  /** The type of the entry: `message`, `compaction`, `context` …. */
  kind: string;
  /** The message, if the entry is a message. */
  message?: Message;
  /** Other data of the entry. */
  data?: any;
}

/** A tool call that a model requests. */
export interface ToolCall {
  /** The provider's id of the call. */
  id: string;
  /** The tool's name. */
  name: string;
  /** The arguments. */
  arguments: any;
}

/** The result of a tool call. */
export interface ToolResult {
  /** The content that the model sees. */
  content?: ContentBlock[];
  /** Structured data for hooks and for the screen. */
  details: Record<string, any>;
  /** Whether the tool failed. */
  is_error?: boolean;
  /** Whether the agent run ends after this tool call. */
  terminate?: boolean;
}

/** What a move within the session's tree is about to do. */
export interface TreePreparation {
  /** The entry to move to. */
  target_id?: string;
  /** The last entry of the branch that is left. */
  old_leaf_id?: string;
  /** The last entry that both branches share. */
  common_ancestor_id?: string;
  /** The entries that a summary of the branch would cover. */
  entries_to_summarize?: SessionEntry[];
  /** Whether the user requested a summary. */
  user_wants_summary?: boolean;
  /** Instructions for the summary. */
  custom_instructions?: string;
  /** Whether these instructions replace the default ones. */
  replace_instructions?: boolean;
  /** A label for the branch. */
  label?: string;
}

/** The token counts of one model call, as reported by the provider. */
export interface Usage {
  /** The number of tokens sent. */
  input_tokens?: number;
  /** The number of tokens received. */
  output_tokens?: number;
  /** The number of sent tokens that the provider read from its cache. */
  cached_input_tokens?: number;
  /** The number of sent tokens that the provider wrote to its cache. */
  cached_write_tokens?: number;
  /** The number of received tokens that were reasoning, if the provider reports it. */
  reasoning_tokens?: number;
}

/** Fires when the host determines the directory in which it stores sessions. */
export interface SessionDirectoryResolveEvent extends SharedFields {
  /** The directory that is used unless a hook changes it. */
  default_directory: string;
}

/** Fires when a session has begun. */
export interface SessionStartEvent extends SharedFields {
  /** Why the session starts. */
  source: "startup" | "resume" | "new" | "fork" | "clear" | "compact" | "reload";
  /** The session that this one replaces. */
  previous_session?: string;
}

/** Fires when the host looks for skills, prompts and themes. */
export interface ResourcesDiscoverEvent extends SharedFields {
  /** Why the host looks for resources. */
  reason: "startup" | "reload";
}

/** Fires before another session replaces this one. */
export interface SessionBeforeSwitchEvent extends SharedFields {
  /** What kind of session comes next. */
  reason: "new" | "resume";
  /** The session to switch to, if it already exists. */
  target_session?: string;
}

/** Fires when another session has replaced this one. */
export interface SessionSwitchEvent extends SharedFields {
  /** What kind of session came next. */
  reason: "new" | "resume";
  /** The session that was left. */
  previous_session?: string;
}

/** Fires before the session is forked. */
export interface SessionBeforeForkEvent extends SharedFields {
  /** The entry to fork at. */
  entry_id: string;
  /** Whether the fork is cut before or after the entry. */
  position: "before" | "at";
  /** Whether the fork starts without the earlier conversation. */
  skip_conversation_restore?: boolean;
}

/** Fires when the session has been forked. */
export interface SessionForkEvent extends SharedFields {
  /** The entry at which the session was forked. */
  entry_id: string;
  /** The session that was forked. */
  previous_session?: string;
}

/** Fires before the user moves to another entry of the session's tree. */
export interface SessionBeforeTreeEvent extends SharedFields {
  /** What the move is about to do. */
  preparation: TreePreparation;
}

/** Fires when the session has moved to another entry of its tree. */
export interface SessionTreeEvent extends SharedFields {
  /** The last entry of the branch that is current now. */
  new_leaf_id: string;
  /** The last entry of the branch that was left. */
  old_leaf_id?: string;
  /** The entry that holds the summary of the branch that was left. */
  summary_entry?: SessionEntry;
  /** Whether a hook supplied the summary. */
  from_hook?: boolean;
}

/** Fires when the session's name has changed. */
export interface SessionInfoChangeEvent extends SharedFields {
  /** The new name. */
  name: string;
}

/** Fires when the session ends. */
export interface SessionEndEvent extends SharedFields {
  /** Why the session ends. */
  reason: "quit" | "new" | "resume" | "fork" | "reload" | "clear" | "error";
  /** The session that replaces it. */
  target_session?: string;
}

/** Fires as the first step of every compaction. */
export interface PreCompactEvent extends SharedFields {
  /** Who requested the compaction. */
  source: "manual" | "auto" | "overflow" | "tool_overflow";
  /** The user's instructions for the summary. */
  custom_instructions?: string;
}

/** Fires just before the summary is written. */
export interface BeforeCompactionEvent extends SharedFields {
  /** What the compaction is about to do. */
  preparation?: CompactionPreparation;
  /** The entries of the current branch of the session. */
  branch_entries?: SessionEntry[];
  /** The user's instructions for the summary. */
  custom_instructions?: string;
  /** Input tokens that the session has used. */
  input_tokens?: number;
  /** Output tokens that the session has used. */
  output_tokens?: number;
  /** The size of the model's context window in tokens, if known. */
  context_limit?: number;
  /** Why the compaction happens. */
  reason: "threshold" | "overflow" | "manual";
}

/** Fires when the host starts to write the summary. */
export interface CompactionStartEvent extends SharedFields {
  /** The size of the context, in tokens. */
  tokens_before: number;
}

/** Fires when a summary has replaced the conversation. */
export interface AfterCompactionEvent extends SharedFields {
  /** The session entry that holds the summary. */
  compaction_entry?: SessionEntry;
  /** The summary. */
  summary: string;
  /** Whether a hook supplied the summary. */
  from_hook?: boolean;
  /** Why the compaction happened. */
  reason: "threshold" | "overflow" | "manual";
  /** Input tokens that the session had used before the compaction. */
  input_tokens?: number;
  /** Output tokens that the session had used before the compaction. */
  output_tokens?: number;
  /** The size of the model's context window in tokens, if known. */
  context_limit?: number;
}

/** Fires when a compaction has failed. */
export interface CompactionFailedEvent extends SharedFields {
  /** What went wrong. */
  error: string;
}

/** Fires when an input arrives, before commands and templates are expanded. */
export interface UserInputEvent extends SharedFields {
  /** The text. */
  text: string;
  /** Images that came with the text. */
  images?: Image[];
  /** Where the input comes from. */
  source?: "interactive" | "rpc" | "extension" | "cron" | "subagent" | "goal" | "channel";
}

/** Fires when a user message has been recorded, before it is sent to the model. */
export interface UserPromptSubmitEvent extends SharedFields {
  /** The message. */
  prompt: string;
}

/** Fires before messages of the steering queue are sent to the model. */
export interface UserSteeringSubmitEvent extends SharedFields {
  /** The messages in order. */
  messages: string[];
}

/** Fires before a queued follow-up is sent to the model. */
export interface UserFollowupSubmitEvent extends SharedFields {
  /** The message. */
  prompt: string;
}

/** Fires when the user runs a shell command themselves. */
export interface UserBashEvent extends SharedFields {
  /** The command line. */
  command: string;
  /** Whether the command and its output are kept from the model. */
  exclude_from_context?: boolean;
  /** The directory in which the command runs. */
  cwd: string;
}

/** Fires when the agent starts to wait for the user. */
export interface WaitingForUserEvent extends SharedFields {
  /** What the agent is waiting for. */
  reason?: "tool_approval" | "question" | "max_iterations" | "idle";
}

/** Fires when a message was added to a queue or removed from one. */
export interface QueueUpdateEvent extends SharedFields {
  /** The queue that changed. */
  queue: "steering" | "follow_up";
  /** The message that was added, if any. */
  message?: string;
  /** All messages in the queue now, in order. */
  messages: string[];
}

/** Fires just before a run starts. */
export interface BeforeAgentStartEvent extends SharedFields {
  /** The user's prompt. */
  prompt: string;
  /** Images that came with the prompt. */
  images?: Image[];
  /** The system prompt. */
  system_prompt?: string;
}

/** Fires when a run has started. */
export interface AgentStartEvent extends SharedFields {
}

/** Fires when a run has ended. */
export interface AgentEndEvent extends SharedFields {
  /** The messages of this run. */
  messages: Message[];
  /** How the run ended. */
  reason?: "completed" | "aborted" | "error";
}

/** Fires when the model finishes without asking for a tool. */
export interface StopEvent extends SharedFields {
  /** The conversation. */
  messages?: Message[];
  /** The model's last answer. */
  response?: string;
  /** The user's last message. */
  last_user_message?: string;
  /** Whether the agent is still running because an earlier `stop` hook added a follow-up. */
  stop_hook_active?: boolean;
}

/** Fires when an error occurs that the agent cannot recover from. */
export interface AgentErrorEvent extends SharedFields {
  /** What went wrong. */
  error: string;
  /** Whether another attempt may succeed. */
  retryable?: boolean;
}

/** Fires when the run reaches the iteration limit. */
export interface MaxIterationsEvent extends SharedFields {
  /** The limit, in iterations. */
  limit: number;
}

/** Fires when the session has been saved. */
export interface SavePointEvent extends SharedFields {
}

/** Fires when the agent is done and no messages are queued. */
export interface AgentSettledEvent extends SharedFields {
}

/** Fires before a failed model call is retried. */
export interface RetryStartEvent extends SharedFields {
  /** The number of the attempt that follows, starting at 1. */
  attempt: number;
  /** The maximum number of retries. */
  max_retries: number;
}

/** Fires when a retry has ended. */
export interface RetryEndEvent extends SharedFields {
  /** The number of the attempt, starting at 1. */
  attempt: number;
  /** Whether the attempt succeeded. */
  success: boolean;
  /** What went wrong, if the attempt failed. */
  error?: string;
}

/** Fires when there is something that the user may want to know. */
export interface NotificationEvent extends SharedFields {
  /** How serious the notification is. */
  level: "info" | "warning" | "error";
  /** The text of the notification. */
  message: string;
  /** What the notification is about: `model_error`, `max_iterations`, `hook_blocked` …. */
  kind?: string;
}

/** Fires when another agent takes over. */
export interface AgentSwitchEvent extends SharedFields {
  /** The agent that was active. */
  from_agent: string;
  /** The agent that is active now. */
  to_agent: string;
  /** How the switch happened: `transfer_task`, `transfer_task_return`, `handoff` …. */
  kind: string;
  /** The models of the agent that was active, if the host configures models for each agent. */
  from_agent_models?: AgentModel[];
}

/** Fires when the user lets the agent continue past the iteration limit. */
export interface SessionLimitResumeEvent extends SharedFields {
  /** The limit before, in iterations. */
  previous_max_iterations: number;
  /** The limit now, in iterations. */
  new_max_iterations: number;
}

/** Fires when a turn starts. */
export interface TurnStartEvent extends SharedFields {
  /** The position of the turn in the run, starting at 0. */
  turn_index?: number;
  /** When the turn started, in milliseconds since 1970-01-01 UTC. */
  started_at_ms?: number;
}

/** Fires when the messages for the model have been assembled. */
export interface ContextEvent extends SharedFields {
  /** The messages. */
  messages: Message[];
}

/** Fires just before a model call. */
export interface BeforeLlmCallEvent extends SharedFields {
  /** The model, as `provider/model`. */
  model_id?: string;
  /** The number of the model call in this run, starting at 1. */
  iteration?: number;
  /** The messages to send. */
  messages?: Message[];
}

/** Fires when the host chooses the tools to offer to the model. */
export interface ToolSelectionEvent extends SharedFields {
  /** The names of the tools. */
  tools: string[];
}

/** Fires before a request is sent to the provider, in the provider's own format. */
export interface ProviderRequestEvent extends SharedFields {
  /** The body of the request. */
  payload: any;
}

/** Fires when the provider has answered. */
export interface ProviderResponseEvent extends SharedFields {
  /** The HTTP status code. */
  status: number;
  /** The headers of the response. */
  headers: Record<string, any>;
}

/** Fires when a model call has succeeded, before its answer is stored. */
export interface AfterLlmCallEvent extends SharedFields {
  /** The model, as `provider/model`. */
  model_id?: string;
  /** The text of the answer. */
  response?: string;
  /** The user's last message. */
  last_user_message?: string;
  /** The token counts, if the provider reported them. */
  usage?: Usage;
  /** The price in US dollars, if known. */
  cost?: number;
}

/** Fires when a message begins. */
export interface MessageStartEvent extends SharedFields {
  /** The part of the message that is known so far. */
  message: Message;
}

/** Fires when text is added to a message. */
export interface MessageUpdateEvent extends SharedFields {
  /** The message so far. */
  message: Message;
  /** The text that was added. */
  delta: string;
}

/** Fires when a message is complete, before it is stored. */
export interface MessageEndEvent extends SharedFields {
  /** The message. */
  message: Message;
}

/** Fires when a turn has ended, for whatever reason. */
export interface TurnEndEvent extends SharedFields {
  /** The position of the turn in the run, starting at 0. */
  turn_index?: number;
  /** The position of the turn in the session, starting at 1. */
  turn_number?: number;
  /** The model's message, if there is one. */
  message?: Message;
  /** The text of the message. */
  response?: string;
  /** The results of the turn's tool calls. */
  tool_results?: ToolResult[];
  /** How the turn ended. */
  reason?: "normal" | "continue" | "steered" | "error" | "cancelled" | "hook_blocked" | "loop_detected";
}

/** Fires when the model asks for a tool that is not available to this agent. */
export interface ToolsDisabledEvent extends SharedFields {
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
}

/** Fires when the model has asked for a tool call. */
export interface ToolExecutionStartEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
}

/** Fires when a running tool reports a partial result. */
export interface ToolExecutionUpdateEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The result so far. */
  partial_result: ToolResult;
}

/** Fires when a tool call is over, whether it ran or not. */
export interface ToolExecutionEndEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The result that the model receives. */
  result: ToolResult;
  /** Whether the call failed or was denied. */
  is_error?: boolean;
}

/** Fires before anything judges a tool call. */
export interface ToolInputTransformEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
}

/** Fires before a tool may run, with the final arguments. */
export interface ToolGuardEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
}

/** Fires before a tool runs. */
export interface PreToolUseEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
}

/** Fires before the user is asked for approval. */
export interface PermissionRequestEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
  /** Permission rules that the host may offer to the user. */
  suggestions?: string[];
}

/** Fires when a tool call was denied. */
export interface PermissionDeniedEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
  /** Why the call was denied. */
  reason?: string;
  /** Who denied the call. */
  by?: "user" | "rule" | "hook";
}

/** Fires when it is decided whether a tool call runs. */
export interface ToolApprovalDecisionEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
  /** What was decided. */
  decision?: "allow" | "deny" | "cancelled";
  /** What decided: `rule_allow`, `pre_tool_use_hook_deny`, `user_approved` …. */
  source?: string;
}

/** Fires when the token budget does not allow another tool call. */
export interface TokenBudgetExceededEvent extends SharedFields {
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The budget, in tokens. */
  budget: number;
  /** The tokens used so far. */
  used: number;
}

/** Fires when a tool has returned or its call was denied. */
export interface ToolResponseTransformEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
  /** The text of the result. */
  tool_response?: string;
  /** Whether the tool failed or the call was denied. */
  is_error?: boolean;
}

/** Fires after a tool ran, or after its call was denied (`blocked`). */
export interface PostToolUseEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
  /** The result of the call. */
  result?: ToolResult;
  /** How long this attempt took, in milliseconds. */
  duration_ms?: number;
  /** How long all attempts took, in milliseconds. */
  total_duration_ms?: number;
  /** Whether the call was denied and did not run. */
  blocked?: boolean;
}

/** Fires when an attempt to run a tool has failed, before `post_tool_use`. */
export interface ToolErrorEvent extends SharedFields {
  /** The provider's id of the tool call. */
  tool_use_id?: string;
  /** The tool's name. */
  tool_name: string;
  /** The arguments of the tool call. */
  tool_input: Record<string, any>;
  /** The agent's role, if the host has roles. */
  role?: string;
  /** The number of this attempt at the call, starting at 1. */
  attempt?: number;
  /** The kind of tool: `shell`, `filesystem`, `agent` …. */
  tool_category?: string;
  /** What went wrong. */
  error?: string;
  /** Whether another attempt follows. */
  will_retry?: boolean;
}

/** Fires when a subagent has been given a task. */
export interface SubagentStartEvent extends SharedFields {
  /** The task's id. */
  task_id: string;
  /** The subagent's name. */
  label: string;
  /** The task. */
  task?: string;
}

/** Fires when a subagent has finished its task. */
export interface SubagentStopEvent extends SharedFields {
  /** The task's id. */
  task_id: string;
  /** The subagent's name. */
  label: string;
  /** The task. */
  task?: string;
  /** How the task ended. */
  status?: "completed" | "failed" | "cancelled";
  /** The subagent's last answer. */
  result?: string;
  /** The subagent's session. */
  child_session_id: string;
  /** The parent's session. */
  parent_session_id: string;
}

/** Fires when another model has been selected. */
export interface ModelSelectEvent extends SharedFields {
  /** The model now, as `provider/model`. */
  model: string;
  /** The model before, as `provider/model`. */
  previous_model?: string;
  /** How the model was chosen. */
  source?: "set" | "cycle" | "restore";
}

/** Fires when another thinking level has been selected. */
export interface ThinkingLevelSelectEvent extends SharedFields {
  /** The level now. */
  level: string;
  /** The level before. */
  previous_level?: string;
}

/** Fires when the gateway has started. */
export interface GatewayStartEvent extends SharedFields {
  /** The ids of the gateway's channels that run, or that will be tried again. */
  channel_ids: string[];
}

/** Fires before the gateway cancels what its channels do. */
export interface GatewayStopEvent extends SharedFields {
  /** The ids of the gateway's channels. */
  channel_ids: string[];
  /** Why it stops. */
  reason?: "shutdown" | "failed";
}

/** Fires before a channel connects. */
export interface ChannelConnectEvent extends SharedFields {
  /** The channel's id. */
  channel_id: string;
  /** The kind of the channel: `web`, `telegram`, `command` …. */
  kind?: string;
  /** The account that the channel uses at its service, if that is known already. */
  account?: string;
}

/** Fires when a channel has disconnected. */
export interface ChannelDisconnectEvent extends SharedFields {
  /** The channel's id. */
  channel_id: string;
  /** Why it was disconnected. */
  reason?: "shutdown" | "failed" | "removed";
}

/** Fires when a message has arrived, also while the agent works. */
export interface MessageReceiveEvent extends SharedFields {
  /** The channel's id. */
  channel_id: string;
  /** The conversation within the channel. */
  chat_id?: string;
  /** The sender. */
  user_id?: string;
  /** The text of the message. */
  text?: string;
  /** All parts of the message. */
  parts?: MessagePart[];
  /** The id that the channel gave the message. */
  message_id?: string;
  /** The thread or topic within the conversation. */
  thread_id?: string;
  /** The message that this one replies to. */
  reply_to?: string;
  /** Whether the sender is alone with the agent. */
  is_direct?: boolean;
  /** Whether the message, as it arrived, has a part with audio. */
  is_voice?: boolean;
  /** What the sender may do. */
  role?: "owner" | "member" | "guest";
  /** Whether the agent is working in this conversation. */
  busy?: boolean;
  /** The name that the sender chose. */
  sender_name?: string;
  /** Whether speech is turned into text here, if that was decided for this message. */
  stt_enabled?: boolean;
}

/** Fires before anything visible leaves the gateway: answers, text before tool calls, what hooks and tools send,
    errors, and output of commands. */
export interface MessageDeliverEvent extends SharedFields {
  /** The channel's id. */
  channel_id: string;
  /** The conversation within the channel. */
  chat_id?: string;
  /** Who gets the message. */
  user_id?: string;
  /** What the message is. */
  kind?: "answer" | "intermediate" | "extra" | "error" | "command";
  /** The text of the message. */
  text?: string;
  /** All parts of the message. */
  parts?: MessagePart[];
  /** The ids of the messages that this one answers. */
  in_reply_to?: string[];
}

/** Fires once for each turn, after its last text was delivered. */
export interface MessageSendEvent extends SharedFields {
  /** The channel's id. */
  channel_id: string;
  /** The conversation within the channel. */
  chat_id?: string;
  /** The message that this one answers, as the hooks of `message_receive` left it. */
  input_text?: string;
  /** The text of the answer, as the hooks of `message_deliver` left it. */
  response_text?: string;
  /** Whether the question was a voice message. */
  is_voice?: boolean;
  /** The ids of the messages that this turn answered. */
  message_ids?: string[];
  /** The sender of the question. */
  user_id?: string;
  /** Whether the turn failed, so that the answer is an error. */
  is_error?: boolean;
  /** Whether answers are spoken here, if that was decided for this turn. */
  tts_enabled?: boolean;
  /** The media types of audio that the channel can send, the best first. */
  audio_formats?: string[];
}

/** Fires when an answer was cancelled. */
export interface MessageCancelEvent extends SharedFields {
  /** The channel's id. */
  channel_id: string;
  /** The conversation within the channel. */
  chat_id?: string;
  /** Who cancelled it. */
  user_id?: string;
  /** Why it was cancelled. */
  reason?: "user" | "interrupt" | "shutdown";
}

/** Fires when a channel, or the answer to a message, has failed. */
export interface GatewayErrorEvent extends SharedFields {
  /** The channel's id. */
  channel_id: string;
  /** What went wrong. */
  error: string;
  /** The conversation in which it happened. */
  chat_id?: string;
  /** The message that was affected. */
  message_id?: string;
  /** A word for the kind of failure, such as `conflict`. */
  code?: string;
  /** Whether the gateway will try again. */
  will_retry?: boolean;
}

/** Fires when an agent sets up a project. */
export interface SetupEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when instruction files have been loaded. */
export interface InstructionsLoadedEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when a tool server asks the user for something. */
export interface ElicitationEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when the user has answered a tool server. */
export interface ElicitationResultEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when a teammate has nothing to do. */
export interface TeammateIdleEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when a task is created. */
export interface TaskCreatedEvent extends SharedFields {
  [key: string]: any;
}

/** Fires before a task is marked as completed. */
export interface TaskCompletedEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when all tool calls of one model answer are over. */
export interface ToolBatchEndEvent extends SharedFields {
  [key: string]: any;
}

/** Fires before a configuration file changes. */
export interface ConfigChangeEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when the working directory has changed. */
export interface CwdChangeEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when a watched file has changed. */
export interface FileChangeEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when a directory has been added to the workspace. */
export interface DirectoryAddedEvent extends SharedFields {
  [key: string]: any;
}

/** Fires before a worktree is created. */
export interface WorktreeCreateEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when a worktree is removed. */
export interface WorktreeRemoveEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when the user has interrupted the agent. */
export interface InterruptEvent extends SharedFields {
  [key: string]: any;
}

/** Fires before a command is expanded to a prompt. */
export interface PromptExpansionEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when a message is shown to the user. */
export interface MessageDisplayEvent extends SharedFields {
  [key: string]: any;
}

/** Fires before another model is selected. */
export interface PreModelSwitchEvent extends SharedFields {
  [key: string]: any;
}

/** Fires when another model has been selected. */
export interface PostModelSwitchEvent extends SharedFields {
  [key: string]: any;
}

/** The type of each event, by its name. */
export interface Events {
  session_directory_resolve: SessionDirectoryResolveEvent;
  session_start: SessionStartEvent;
  resources_discover: ResourcesDiscoverEvent;
  session_before_switch: SessionBeforeSwitchEvent;
  session_switch: SessionSwitchEvent;
  session_before_fork: SessionBeforeForkEvent;
  session_fork: SessionForkEvent;
  session_before_tree: SessionBeforeTreeEvent;
  session_tree: SessionTreeEvent;
  session_info_change: SessionInfoChangeEvent;
  session_end: SessionEndEvent;
  pre_compact: PreCompactEvent;
  before_compaction: BeforeCompactionEvent;
  compaction_start: CompactionStartEvent;
  after_compaction: AfterCompactionEvent;
  compaction_failed: CompactionFailedEvent;
  user_input: UserInputEvent;
  user_prompt_submit: UserPromptSubmitEvent;
  user_steering_submit: UserSteeringSubmitEvent;
  user_followup_submit: UserFollowupSubmitEvent;
  user_bash: UserBashEvent;
  waiting_for_user: WaitingForUserEvent;
  queue_update: QueueUpdateEvent;
  before_agent_start: BeforeAgentStartEvent;
  agent_start: AgentStartEvent;
  agent_end: AgentEndEvent;
  stop: StopEvent;
  agent_error: AgentErrorEvent;
  max_iterations: MaxIterationsEvent;
  save_point: SavePointEvent;
  agent_settled: AgentSettledEvent;
  retry_start: RetryStartEvent;
  retry_end: RetryEndEvent;
  notification: NotificationEvent;
  agent_switch: AgentSwitchEvent;
  session_limit_resume: SessionLimitResumeEvent;
  turn_start: TurnStartEvent;
  context: ContextEvent;
  before_llm_call: BeforeLlmCallEvent;
  tool_selection: ToolSelectionEvent;
  provider_request: ProviderRequestEvent;
  provider_response: ProviderResponseEvent;
  after_llm_call: AfterLlmCallEvent;
  message_start: MessageStartEvent;
  message_update: MessageUpdateEvent;
  message_end: MessageEndEvent;
  turn_end: TurnEndEvent;
  tools_disabled: ToolsDisabledEvent;
  tool_execution_start: ToolExecutionStartEvent;
  tool_execution_update: ToolExecutionUpdateEvent;
  tool_execution_end: ToolExecutionEndEvent;
  tool_input_transform: ToolInputTransformEvent;
  tool_guard: ToolGuardEvent;
  pre_tool_use: PreToolUseEvent;
  permission_request: PermissionRequestEvent;
  permission_denied: PermissionDeniedEvent;
  tool_approval_decision: ToolApprovalDecisionEvent;
  token_budget_exceeded: TokenBudgetExceededEvent;
  tool_response_transform: ToolResponseTransformEvent;
  post_tool_use: PostToolUseEvent;
  tool_error: ToolErrorEvent;
  subagent_start: SubagentStartEvent;
  subagent_stop: SubagentStopEvent;
  model_select: ModelSelectEvent;
  thinking_level_select: ThinkingLevelSelectEvent;
  gateway_start: GatewayStartEvent;
  gateway_stop: GatewayStopEvent;
  channel_connect: ChannelConnectEvent;
  channel_disconnect: ChannelDisconnectEvent;
  message_receive: MessageReceiveEvent;
  message_deliver: MessageDeliverEvent;
  message_send: MessageSendEvent;
  message_cancel: MessageCancelEvent;
  gateway_error: GatewayErrorEvent;
  setup: SetupEvent;
  instructions_loaded: InstructionsLoadedEvent;
  elicitation: ElicitationEvent;
  elicitation_result: ElicitationResultEvent;
  teammate_idle: TeammateIdleEvent;
  task_created: TaskCreatedEvent;
  task_completed: TaskCompletedEvent;
  tool_batch_end: ToolBatchEndEvent;
  config_change: ConfigChangeEvent;
  cwd_change: CwdChangeEvent;
  file_change: FileChangeEvent;
  directory_added: DirectoryAddedEvent;
  worktree_create: WorktreeCreateEvent;
  worktree_remove: WorktreeRemoveEvent;
  interrupt: InterruptEvent;
  prompt_expansion: PromptExpansionEvent;
  message_display: MessageDisplayEvent;
  pre_model_switch: PreModelSwitchEvent;
  post_model_switch: PostModelSwitchEvent;
}

// end of the generated types

/** What a handler receives in addition to the event. */
export interface Context {
  /** Aborted when no one waits for the answer any more. */
  readonly signal: AbortSignal;
}

export type Handler<E = Event> = (
  event: E,
  context: Context,
) => Effect | object | null | undefined | void | Promise<Effect | object | null | undefined | void>;

export interface Options {
  /** Selects events by their subject, which is the tool's name for tool calls: a name, names separated by `|`, or a regular expression. */
  matcher?: string;
  /** Handlers with a higher priority run first. The default is 0. */
  priority?: number;
}

/** Registers a handler for one event or for several events. */
export function on<Name extends keyof Events>(event: Name | Name[], handler: Handler<Events[Name]>): void;
export function on<Name extends keyof Events>(
  event: Name | Name[],
  options: Options,
  handler: Handler<Events[Name]>,
): void;
export function on(event: string | string[], handler: Handler): void;
export function on(event: string | string[], options: Options, handler: Handler): void;

/** Combines effects. Of several permissions, the strongest one counts. */
export function both(...effects: Effect[]): Effect;
/** Allows the operation without a question, unless another hook asks or denies. */
export function allow(): Effect;
/** Leaves the decision to the user. */
export function ask(reason: string): Effect;
/** Denies the operation. The model sees the reason. */
export function deny(reason: string): Effect;
/** Stops the operation. */
export function block(reason: string): Effect;
/** Changes fields of the event. */
export function patch(fields: Record<string, unknown>): Effect;
/** Adds text for the model. */
export function context(text: string): Effect;
/** Adds a user message that keeps the agent working. */
export function followUp(text: string): Effect;
/** Adds a notice for the user. The model does not see it. */
export function notice(text: string): Effect;
/** Ends the agent's run after this step. */
export function stopRun(reason: string): Effect;
/** Declares that the hook did the work itself, so the agent must not do it. */
export function handled(): Effect;
