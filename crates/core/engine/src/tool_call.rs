//! One tool call, from the model's request to the result that the model receives.
//!
//! An agent announces a call with more than ten events. Their order and their answers decide
//! whether the call may run. This module sends them all. A host calls [`judge`], matches on the
//! result, and finally calls `finish`:
//!
//! ```
//! use tenterhook_engine::tool_call::{JudgedToolCall, UserAnswer, judge};
//! use tenterhook_engine::{Effect, Engine, Origin, ToolCall, ToolResult, event::PreToolUse};
//!
//! /// Runs a tool.
//! fn run(name: &str, cmd: &str) -> ToolResult {
//!     ToolResult::text(format!("{name} ran `{cmd}`"))
//! }
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let engine = Engine::new();
//! engine.on(|event: &PreToolUse| match event.tool_input.get("cmd").and_then(|cmd| cmd.as_str()) {
//!     Some("reboot") => Effect::deny("not on this machine"),
//!     Some("git push") => Effect::ask("is the branch ready?"),
//!     _ => Effect::none(),
//! });
//! let hooks = engine.dispatcher(Origin::default());
//!
//! let mut results = Vec::new();
//! for cmd in ["ls", "git push", "reboot"] {
//!     let call = ToolCall::new("call_1", "shell", serde_json::json!({ "cmd": cmd }));
//!     // `()` is a host without permission rules of its own: only hooks decide.
//!     let permitted = match judge(&hooks, &(), &call).await {
//!         JudgedToolCall::Proceed(ready) => Ok(ready),
//!         JudgedToolCall::Ask(asked) => {
//!             assert_eq!(asked.question().reason(), Some("is the branch ready?"));
//!             asked.answer(UserAnswer::Allow).await // ask a person here
//!         }
//!         JudgedToolCall::Stop(stopped) => Err(stopped),
//!     };
//!     let finished = match permitted {
//!         Ok(ready) => {
//!             // Use the arguments of the ready call, because hooks may have changed them.
//!             let cmd = ready.call().input.get("cmd").and_then(|cmd| cmd.as_str());
//!             let cmd = cmd.unwrap_or_default().to_owned();
//!             ready.finish(run("shell", &cmd)).await
//!         }
//!         Err(stopped) => stopped.finish().await,
//!     };
//!     results.push(finished.result.joined_text());
//! }
//! assert_eq!(results, [
//!     "shell ran `ls`",
//!     "shell ran `git push`",
//!     "The tool call was rejected by a pre_tool_use hook. Reason: not on this machine",
//! ]);
//! # });
//! ```
//!
//! # Stages
//!
//! Each stage is a type. A call that was denied has no method to run it, and the compiler warns if
//! a stage is not completed.
//!
//! | stage | comes from | events sent before the next stage |
//! |---|---|---|
//! | [`StartedToolCall`] | [`start`], which sends `tool_execution_start` | the gates below |
//! | [`AskedToolCall`] | [`judge`](StartedToolCall::judge) | `tool_approval_decision`; `permission_denied` |
//! | [`ReadyToolCall`] | a judgement or an answer | `tool_response_transform` |
//! | [`StoppedToolCall`] | a judgement or an answer | `tool_response_transform`, `post_tool_use`, `tool_execution_end` |
//! | [`RanToolCall`] | [`ReadyToolCall::ran`] | `tool_error` if it failed, `post_tool_use`, `tool_execution_end` |
//! | [`FinishedToolCall`] | `finish` | |
//!
//! A stage that is not completed causes a compiler warning:
//!
//! ```compile_fail
//! #![deny(unused_must_use)]
//! use tenterhook_engine::{ToolResult, tool_call::ReadyToolCall};
//!
//! async fn forget_the_end(ready: ReadyToolCall<'_>) {
//!     ready.ran(ToolResult::text("done")).await; // `.finish().await` is missing
//! }
//! ```
//!
//! A host that drops a stage, or a future of this module, abandons the call: its hooks are
//! cancelled and no further event is sent. The host itself sends `tool_execution_update` while its
//! tool runs, `waiting_for_user` before it asks, and `token_budget_exceeded`.
//!
//! # Calls that run elsewhere
//!
//! If another program runs the tool, its gate and its result are two separate requests.
//! [`ReadyToolCall::hand_over`] ends the first part, and [`returned`] sends the events of the second.
//!
//! # Gates
//!
//! | step | stops the call | approves it |
//! |---|---|---|
//! | `tool_input_transform` | block | – |
//! | `tool_guard` | deny, block; ask always sends it to a person | – |
//! | [consent](RuleVerdict::consent) demanded by the host | always sends it to a person | – |
//! | [rules](ToolCallHost::rule) of the host | a deny rule | an allow rule, a grant, a harmless tool |
//! | `pre_tool_use` | deny, block; ask sends it to a person | allow, unless an `ask` rule applies |
//! | [a mode](ToolCallHost::answers_yes) that answers yes | – | answers every question that neither a hook nor a consent requires |
//! | `permission_request` | deny, block | allow, unless a guard or the host requires a person |
//! | the person | no, or if no one can be asked | yes |
//!
//! `pre_tool_use` fires for every call that was not denied before it, also for one that a rule
//! allows. If a hook changes arguments, they are [checked](ToolCallHost::check_input) again, and
//! the guard and the rules judge them again. This second judgement may deny or ask, but never
//! approve: of the rulings on the first and the final arguments, the stricter one counts. If a hook
//! of `permission_request` changes arguments, `pre_tool_use` judges them again too. So every gate
//! has seen the arguments of a [`ReadyToolCall`].
//!
//! Within `pre_tool_use`, a hook of the main phase only sees the rewrites of the hooks before it. A
//! hook that must judge the final arguments belongs in [`Phase::Guard`](crate::Phase::Guard), or
//! on `tool_guard`.

mod elsewhere;
mod gates;
mod host;
mod in_flight;
mod question;
mod result;
mod ruling;
mod stage;

pub use self::elsewhere::{HandedOverToolCall, returned};
pub use self::host::{ToolCallHost, ToolCallView};
pub use self::in_flight::RunStop;
pub use self::question::{AskedBy, ToolCallDenial, ToolCallQuestion, UserAnswer};
pub use self::result::FinishedToolCall;
pub use self::ruling::{PermissionRuling, RuleVerdict};
pub use self::stage::{
    ArgumentsNotObject, AskedToolCall, CANCELLED, JudgedToolCall, RanToolCall, ReadyToolCall,
    StartedToolCall, StoppedToolCall, judge, start,
};
