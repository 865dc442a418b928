//! morphix's hook files: the examples of its document, and its conformance cases.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::event::{
    PermissionDenied, PostToolUse, PreToolUse, TokenBudgetExceeded, ToolError, ToolsDisabled,
};
use tenterhook_engine::{Engine, Event, ToolResult};
use tenterhook_runners::worker::Host;
use tenterhook_systems::{morphix, operator};

use crate::stage::{Listener, PROVIDED, Stage, run_without_host};

const API: &str = "morphix";

/// The document's example of a complete file of hooks, and a hook that shows what it counted.
const MONITOR: &str = r#"
"""Custom hook: monitor tool calls and log summary statistics."""
import json
import logging
import time
from core.hooks_registry import HookContext, hooks_registry

logger = logging.getLogger(__name__)
# Track cumulative stats per tool
_stats: dict[str, dict] = {}

def _get_stats(tool_name: str) -> dict:
    if tool_name not in _stats:
        _stats[tool_name] = {
            "calls": 0,
            "successes": 0,
            "failures": 0,
            "total_duration_ms": 0.0,
        }
    return _stats[tool_name]

@hooks_registry.register("on_before_tool")
def monitor_before_tool(ctx: HookContext) -> None:
    """Count every tool invocation attempt."""
    stats = _get_stats(ctx.tool_name)
    stats["calls"] += 1
    logger.debug(f"▶ {ctx.tool_name} called with {list(ctx.parameters.keys())}")

@hooks_registry.register("on_after_tool")
def monitor_after_tool(ctx: HookContext) -> None:
    """Record successful execution and duration."""
    stats = _get_stats(ctx.tool_name)
    stats["successes"] += 1
    stats["total_duration_ms"] += ctx.duration * 1000
    # Log a summary every 10 calls
    if stats["calls"] % 10 == 0:
        avg = stats["total_duration_ms"] / stats["calls"]
        logger.info(
            f"📊 {ctx.tool_name}: {stats['calls']} calls, "
            f"{stats['successes']} ok / {stats['failures']} fail, "
            f"avg {avg:.1f}ms"
        )

@hooks_registry.register("on_tool_error")
def monitor_tool_error(ctx: HookContext) -> None:
    """Record failure and log the error."""
    stats = _get_stats(ctx.tool_name)
    stats["failures"] += 1
    logger.warning(
        f"⚠ {ctx.tool_name} failed (attempt {ctx.attempt}): {ctx.error}"
    )

@hooks_registry.register("on_token_budget_exceeded")
def monitor_budget_exceeded(ctx: HookContext) -> None:
    """Alert when token budget is exhausted."""
    logger.warning(
        f"💰 Token budget exceeded during {ctx.tool_name} call in workspace '{ctx.workspace}'"
    )

@hooks_registry.register("on_tools_disabled")
def show(ctx):
    with open("DIR/stats", "w") as file:
        json.dump(_stats, file)
"#;

/// The document's audit hook, and a hook that shows the trail.
const AUDIT: &str = r#"
"""Global hook: audit every tool call to the audit log."""
import json
import logging
from agents.audit import log_operation
from core.hooks_registry import HookContext, hooks_registry

logger = logging.getLogger(__name__)

@hooks_registry.register("on_before_tool")
def audit_on_before_tool(ctx: HookContext) -> None:
    """Log tool invocation attempt before execution."""
    log_operation(
        operation="tool_before",
        details=json.dumps({
            "tool": ctx.tool_name,
            "params": {k: str(v)[:200] for k, v in ctx.parameters.items()},
            "role": ctx.role,
            "workspace": ctx.workspace,
        }),
        success=True,
    )

@hooks_registry.register("on_after_tool")
def audit_on_after_tool(ctx: HookContext) -> None:
    """Log tool result after successful execution."""
    log_operation(
        operation="tool_after",
        details=json.dumps({
            "tool": ctx.tool_name,
            "duration": round(ctx.duration, 3),
            "role": ctx.role,
            "workspace": ctx.workspace,
        }),
        success=True,
    )

@hooks_registry.register("on_tool_error")
def audit_on_tool_error(ctx: HookContext) -> None:
    """Log tool failure with error details."""
    log_operation(
        operation="tool_error",
        details=json.dumps({
            "tool": ctx.tool_name,
            "error": ctx.error,
            "attempt": ctx.attempt,
            "role": ctx.role,
            "workspace": ctx.workspace,
        }),
        success=False,
    )

@hooks_registry.register("on_tools_disabled")
def show(ctx):
    from agents.audit import get_recent_operations
    assert get_recent_operations(1) == get_recent_operations()[-1:]
    with open("DIR/trail", "w") as file:
        json.dump(get_recent_operations(), file)
"#;

fn call() -> PreToolUse {
    PreToolUse::new("file_manager")
        .with_tool_use_id("c1")
        .with_tool_input(object(&json!({"action": "read", "path": "test.py"})))
}

fn object(value: &Value) -> tenterhook_engine::JsonObject {
    value.as_object().unwrap().clone()
}

fn done(result: ToolResult) -> PostToolUse {
    PostToolUse::new("file_manager")
        .with_result(result)
        .with_duration_ms(20)
        .with_total_duration_ms(250)
        .with_attempt(2)
}

fn failed() -> ToolError {
    ToolError::new("file_manager")
        .with_error("missing_required_param: command")
        .with_attempt(2)
}

fn disabled() -> ToolsDisabled {
    ToolsDisabled::new("file_manager")
}

/// Sends an event that no hook may fail on.
async fn send<E: Event>(stage: &Stage, event: E) {
    let outcome = stage.hooks().dispatch(event).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
}

async fn one_of_each(stage: &Stage) {
    send(stage, call()).await;
    send(stage, done(ToolResult::text("ok"))).await;
    send(stage, done(ToolResult::error("no"))).await;
    send(stage, failed()).await;
    let budget = TokenBudgetExceeded::new("file_manager", 0, 0);
    send(stage, budget).await;
    send(stage, disabled()).await;
}

// M9, M10: the hooks of the document's monitor, each at its point.
#[tokio::test]
async fn the_monitor_of_morphix_counts_calls_successes_and_failures() {
    let stage = Stage::new();
    let hooks = stage.add(API, "core/hooks/my_monitor.py", MONITOR).await;
    let names: Vec<_> = hooks.iter().map(|hook| &*hook.event).collect();
    assert_eq!(
        names,
        [
            "on_before_tool",
            "on_after_tool",
            "on_tool_error",
            "on_token_budget_exceeded",
            "on_tools_disabled"
        ]
    );
    one_of_each(&stage).await;
    let stats: Value = serde_json::from_str(&stage.written("stats").await).unwrap();
    assert_eq!(
        stats,
        json!({"file_manager": {"calls": 1, "successes": 1, "failures": 1, "total_duration_ms": 250.0}})
    );
}

#[tokio::test]
async fn the_audit_hook_of_morphix_writes_its_trail() {
    let stage = Stage::new();
    stage.add(API, "core/hooks/audit.py", AUDIT).await;
    one_of_each(&stage).await;
    let trail: Vec<Value> = serde_json::from_str(&stage.written("trail").await).unwrap();
    let trail: Vec<_> = trail
        .iter()
        .map(|entry| {
            let details: Value = serde_json::from_str(entry["details"].as_str().unwrap()).unwrap();
            (
                entry["operation"].as_str().unwrap().to_owned(),
                details,
                entry["success"] == true,
            )
        })
        .collect();
    let place = |more: Value| {
        let mut details = json!({"tool": "file_manager", "role": "agent", "workspace": "main"});
        details.as_object_mut().unwrap().extend(object(&more));
        details
    };
    let params = json!({"params": {"action": "read", "path": "test.py"}});
    let error = json!({"error": "missing_required_param: command", "attempt": 2});
    assert_eq!(
        trail,
        [
            ("tool_before".to_owned(), place(params), true),
            (
                "tool_after".to_owned(),
                place(json!({"duration": 0.25})),
                true
            ),
            ("tool_error".to_owned(), place(error), false),
        ]
    );
}

/// A project of morphix, whose hooks run inside it.
const PROJECT: [(&str, &str); 5] = [
    ("core/__init__.py", "VERSION = '9'\n"),
    ("core/config.py", "LIMIT = 3\n"),
    (
        "core/hooks_registry.py",
        "NEWEST = 'newest'\nclass HookContext: pass\n",
    ),
    ("core/security/__init__.py", ""),
    (
        "core/security/anti_distillation.py",
        "from core.config import LIMIT\nfrom core.hooks_registry import HookContext\n\n\
         def judge(ctx):\n    assert isinstance(ctx, HookContext)\n    ctx.parameters['limit'] = LIMIT\n",
    ),
];

const IMPORTS_ITS_PROJECT: &str = "\
from core import VERSION
from core.hooks_registry import NEWEST, HookContext, hooks_registry
from core.security.anti_distillation import judge

@hooks_registry.register('on_before_tool')
def guard(ctx: HookContext):
    ctx.parameters['names'] = f'{VERSION} {NEWEST}'
    judge(ctx)
";

#[tokio::test]
async fn a_hook_of_morphix_imports_the_package_of_its_project() {
    for place in ["core/hooks", "workspaces/lab/hooks"] {
        let stage = Stage::new();
        for (name, text) in PROJECT {
            stage.write(name, text);
        }
        stage
            .add(API, &format!("{place}/guard.py"), IMPORTS_ITS_PROJECT)
            .await;
        let outcome = stage.hooks().dispatch(call()).await;
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        let input = outcome.into_rewritten().unwrap().tool_input;
        assert_eq!(
            (&input["names"], &input["limit"]),
            (&"9 newest".into(), &3.into())
        );
        let missing = "from core.security.missing import x\n";
        let error = stage.load(API, &format!("{place}/other.py"), missing).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("No module named 'core.security.missing'"),
            "{error}"
        );
        assert!(!error.contains("not installed"), "{error}");
    }
}

#[test]
fn the_modules_that_are_provided_are_those_of_the_stand_ins() {
    let mut text = "from tenterhook import _morphix, _operator\n".to_owned();
    for (name, system) in [
        ("morphix", &morphix::FOLDER),
        ("operator", &operator::FOLDER),
    ] {
        let packages = &system.scripts.as_ref().unwrap().project_packages;
        let (names, provided) = (json!(packages.names), json!(packages.provided));
        let checks = format!(
            "finder = _{name}.stand_ins()\n\
             assert sorted(finder.names) == sorted({provided}), sorted(finder.names)\n\
             assert {{name.partition('.')[0] for name in finder.names}} == set({names})\n"
        );
        text.push_str(&checks);
    }
    run_without_host(&format!("{text}print('passed')\n"));
}

/// Writes the context of every event to a file.
const WITNESS: &str = r#"
import asyncio, dataclasses, json
from core.hooks_registry import hooks_registry, HookContext

def write(ctx):
    assert dataclasses.is_dataclass(ctx) and isinstance(ctx, HookContext)
    with open("DIR/" + ctx.hook_point, "w") as file:
        json.dump(dataclasses.asdict(ctx), file)

for point in ("on_before_tool", "on_tool_error", "on_tools_disabled"):
    hooks_registry.register(point)(write)

for point in ("on_after_tool", "on_permission_denied", "on_token_budget_exceeded"):
    @hooks_registry.register(point)
    async def later(ctx):
        await asyncio.sleep(0)
        write(ctx)
"#;

// M1, M5, M8, M9, M11: defaults, sync and async handlers, the point that fired, error and attempt.
#[tokio::test]
async fn every_point_of_morphix_has_its_fields() {
    let stage = Stage::new();
    stage.add(API, "witness.py", WITNESS).await;
    one_of_each(&stage).await;
    let denied = PermissionDenied::new("file_manager").with_role("user");
    send(&stage, denied).await;
    let base = |point: &str, more: Value| {
        let mut context = json!({
            "hook_point": point, "tool_name": "file_manager", "parameters": {}, "role": "agent", "result": null,
            "error": null, "duration": 0.0, "attempt": 1, "workspace": "main", "session_id": "s1",
        });
        context.as_object_mut().unwrap().extend(object(&more));
        context
    };
    let input = json!({"parameters": {"action": "read", "path": "test.py"}});
    let error = json!({"error": "missing_required_param: command", "attempt": 2});
    let result = json!({"result": "ok", "duration": 0.25, "attempt": 2});
    for (point, more) in [
        ("on_before_tool", input),
        ("on_after_tool", result),
        ("on_tool_error", error),
        ("on_permission_denied", json!({"role": "user"})),
        ("on_token_budget_exceeded", json!({})),
        ("on_tools_disabled", json!({})),
    ] {
        let context: Value = serde_json::from_str(&stage.written(point).await).unwrap();
        assert_eq!(context, base(point, more), "{point}");
    }
}

// M18: what a handler changes in place is what the tool runs with; rebinding a field changes nothing.
#[tokio::test]
async fn arguments_that_a_handler_changes_in_place_are_the_tools() {
    for (change, input) in [
        (
            "ctx.parameters['path'] = 'b'",
            Some(json!({"action": "read", "path": "b"})),
        ),
        (
            "del ctx.parameters['path']",
            Some(json!({"action": "read"})),
        ),
        (
            "ctx.parameters.update(deep={'a': [1]})",
            Some(json!({"action": "read", "path": "test.py", "deep": {"a": [1]}})),
        ),
        ("ctx.parameters = {'path': 'b'}", None),
        ("ctx.tool_name = 'other'", None),
        ("return {'block': True}", None),
        ("len(ctx.parameters)", None),
    ] {
        let stage = Stage::new();
        let text = format!(
            "from core.hooks_registry import hooks_registry\n@hooks_registry.register('on_before_tool')\n\
             async def change(ctx):\n    {change}\n"
        );
        stage.add(API, "a.py", &text).await;
        let outcome = stage.hooks().dispatch(call()).await;
        assert_eq!(outcome.decision().reason(), None, "{change}");
        assert!(outcome.failures().is_empty(), "{change}: {outcome:?}");
        let rewritten = outcome
            .into_rewritten()
            .map(|event| json!(event.tool_input));
        assert_eq!(rewritten, input, "{change}");
    }
}

const BROKEN: &str = "
from core.hooks_registry import hooks_registry
import asyncio

@hooks_registry.register('on_before_tool')
def broken(ctx):
    raise RuntimeError('no luck')

@hooks_registry.register('on_before_tool')
async def cancelled(ctx):
    raise asyncio.CancelledError()

@hooks_registry.register('on_before_tool')
def changes(ctx):
    ctx.parameters['seen'] = True
";

// `dispatch` awaits each handler before it calls the next one.
#[tokio::test]
async fn handlers_of_a_failure_run_in_the_order_of_their_registration() {
    let stage = Stage::new();
    let text = "import asyncio\nfrom core.hooks_registry import hooks_registry\n\
                @hooks_registry.register('on_tool_error')\nasync def slow(ctx):\n    \
                for _ in range(500):\n        await asyncio.sleep(0)\n    open('DIR/order', 'a').write('slow ')\n\
                @hooks_registry.register('on_tool_error')\ndef quick(ctx):\n    open('DIR/order', 'a').write('quick')\n";
    stage.add(API, "a.py", text).await;
    send(&stage, failed()).await;
    assert_eq!(stage.written("order").await, "slow quick");
}

// M6, M21: an exception hurts no other handler and stops nothing, unless gates are strict.
#[tokio::test]
async fn a_handler_of_morphix_that_raises_is_reported_and_the_others_run() {
    let stage = Stage::new();
    stage.add(API, "broken.py", BROKEN).await;
    let outcome = stage.hooks().dispatch(call()).await;
    assert_eq!(outcome.decision().reason(), None);
    let causes: Vec<_> = outcome
        .failures()
        .iter()
        .map(|failure| &*failure.cause)
        .collect();
    assert_eq!(
        causes,
        [
            "broken.py:7: RuntimeError: no luck",
            "broken.py:11: CancelledError"
        ]
    );
    assert!(outcome.failures().iter().all(|failure| failure.let_through));
    assert_eq!(outcome.into_rewritten().unwrap().tool_input["seen"], true);

    let strict = Stage::with(Engine::builder().strict(true).build());
    strict.add(API, "broken.py", BROKEN).await;
    let outcome = strict.hooks().dispatch(call()).await;
    assert!(outcome.decision().reason().unwrap().contains("no luck"));
}

// M2, M3, M4, M19, M20: a reloaded file replaces the old one, a handler that unregisters itself is
// not called again, and a file that fails halfway registers nothing.
#[tokio::test]
async fn files_of_morphix_come_and_go_whole() {
    let stage = Stage::new();
    let other = "from core.hooks_registry import hooks_registry\n\
                 @hooks_registry.register('on_before_tool')\ndef other(ctx): ctx.parameters['other'] = True\n";
    stage.add(API, "other.py", other).await;
    let once = "from core.hooks_registry import hooks_registry\n\
                @hooks_registry.register('on_before_tool')\n@hooks_registry.register('on_before_tool')\ndef once(ctx):\n    \
                ctx.parameters['once'] = True\n    assert hooks_registry.unregister('on_before_tool', once)\n    \
                assert not hooks_registry.unregister('on_before_tool', once)\n";
    let hooks = stage.add(API, "once.py", once).await;
    assert_eq!(hooks.len(), 1);
    let keys = async || {
        let outcome = stage.hooks().dispatch(call()).await;
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        let event = outcome.into_rewritten().unwrap();
        let mut keys: Vec<_> = event.tool_input.keys().cloned().collect();
        keys.retain(|key| !["action", "path"].contains(&key.as_str()));
        keys
    };
    assert_eq!(keys().await, ["other", "once"]);
    assert_eq!(keys().await, ["other"]);
    let again = once.replace("['once']", "['again']");
    stage.load(API, "once.py", &again).await.unwrap();
    assert_eq!(keys().await, ["other", "again"]);

    let half = format!("{other}raise ValueError('half')\n");
    let error = stage.load(API, "half.py", &half).await.unwrap_err();
    assert_eq!(error.to_string(), "half.py:4: ValueError: half");
    let listed = "from core.hooks_registry import hooks_registry\nimport json\n\
                  json.dump(hooks_registry.list_hooks(), open('DIR/listed', 'w'))\n";
    stage.load(API, "listed.py", listed).await.unwrap();
    assert_eq!(
        stage.written("listed").await,
        r#"{"on_before_tool": ["other"]}"#
    );
}

/// The tests of the document, and the rest of what a registry does, without a host.
const REGISTRY: &str = r#"
import asyncio
from core.hooks_registry import HookContext, HooksRegistry

async def test_monitor_counts_calls():
    reg = HooksRegistry()
    call_count = 0
    @reg.register("on_before_tool")
    def count_calls(ctx: HookContext) -> None:
        nonlocal call_count
        call_count += 1
    ctx = HookContext(
        hook_point="on_before_tool",
        tool_name="file_manager",
        parameters={"action": "read", "path": "test.py"},
    )
    await reg.dispatch("on_before_tool", ctx)
    await reg.dispatch("on_before_tool", ctx)
    assert call_count == 2

async def test_error_hook_receives_error_field():
    reg = HooksRegistry()
    captured_error = None
    @reg.register("on_tool_error")
    def capture_error(ctx: HookContext) -> None:
        nonlocal captured_error
        captured_error = ctx.error
    ctx = HookContext(
        hook_point="on_tool_error",
        tool_name="bash_manager",
        parameters={"command": ""},
        error="missing_required_param: command",
        attempt=1,
    )
    await reg.dispatch("on_tool_error", ctx)
    assert captured_error == "missing_required_param: command"

def test_hook_unregister():
    reg = HooksRegistry()
    @reg.register("on_before_tool")
    def temp_hook(ctx: HookContext) -> None:
        pass
    assert len(reg.list_hooks().get("on_before_tool", [])) == 1
    reg.unregister("on_before_tool", temp_hook)
    assert len(reg.list_hooks().get("on_before_tool", [])) == 0

async def test_the_rest():
    reg, seen = HooksRegistry(), []
    await reg.dispatch("on_before_tool", HookContext("", "x"))
    @reg.register("on_before_tool")
    def broken(ctx):
        raise ValueError("no")
    @reg.register("on_before_tool")
    async def sees(ctx):
        await asyncio.sleep(0)
        seen.append(ctx.hook_point)
    reg.register("on_before_tool")(sees)
    reg.register("on_after_tool")(sees)
    await reg.dispatch("on_before_tool", HookContext("wrong", "x"))
    assert seen == ["on_before_tool"]
    assert reg.list_hooks() == {"on_before_tool": ["broken", "sees"], "on_after_tool": ["sees"]}
    reg.clear_hook_point("on_after_tool")
    assert list(reg.list_hooks()) == ["on_before_tool"]
    reg.clear()
    assert reg.list_hooks() == {}

test_hook_unregister()
asyncio.run(test_monitor_counts_calls())
asyncio.run(test_error_hook_receives_error_field())
asyncio.run(test_the_rest())
print("passed")
"#;

// M2, M3, M4, M5, M6, M7, M8: the registry by itself, as the document's tests use it.
#[test]
fn the_registry_of_morphix_can_be_tested_without_a_host() {
    run_without_host(&format!("{PROVIDED}{REGISTRY}"));
}

/// Texts with credentials, and what the audit trail keeps of them.
const CREDENTIALS: &str = r#"
import json
from agents.audit import get_recent_operations, log_operation, redact_credentials
for text, expected in [
    ("password=swordfish1 x", "password=*** x"),
    ("https://bob:letmein99@h/", "https://***@h/"),
    ("curl -H 'Authorization: Bearer abc.def-123' h", "curl -H 'Authorization: ***' h"),
    ("sent Bearer abcdef123456", "sent Bearer ***"),
    ("DB_PASSWORD=a&x=1", "DB_PASSWORD=***&x=1"),
    ('{"api_key": "two words", "n": 1}', '{"api_key": "***", "n": 1}'),
    (json.dumps({"p": '{"token": "t t"}'}), json.dumps({"p": '{"token": "***"}'})),
    ("tokens used: 5", "tokens used: 5"),
    ("see https://h/a@b", "see https://h/a@b"),
]:
    assert redact_credentials(text) == expected, redact_credentials(text)
log_operation("a", "secret: s1", "me", False)
log_operation("b", "x" * 9000)
first, second = get_recent_operations()
assert (first["details"], first["user"], first["success"]) == ("secret: ***", "me", False)
assert len(second["details"]) == 500 and second["user"] == "morphix"
assert get_recent_operations(limit=1) == [second]
print("passed")
"#;

#[test]
fn the_audit_trail_of_morphix_keeps_no_credentials() {
    run_without_host(&format!("{PROVIDED}{CREDENTIALS}"));
}

#[tokio::test]
async fn what_the_monitor_of_morphix_logs_is_shown() {
    let heard = Arc::new(Listener::default());
    let stage = Stage::new().hosted_by(Arc::clone(&heard) as Arc<dyn Host>);
    stage.add(API, "core/hooks/my_monitor.py", MONITOR).await;
    for _ in 0..10 {
        send(&stage, call()).await;
    }
    send(&stage, done(ToolResult::text("ok"))).await;
    send(&stage, failed()).await;
    assert_eq!(
        heard.lines(2).await,
        [
            "INFO: 📊 file_manager: 10 calls, 1 ok / 0 fail, avg 25.0ms",
            "WARNING: ⚠ file_manager failed (attempt 2): missing_required_param: command",
        ]
    );
}

#[tokio::test]
async fn a_script_that_configures_logging_keeps_its_configuration() {
    let heard = Arc::new(Listener::default());
    let stage = Stage::new().hosted_by(Arc::clone(&heard) as Arc<dyn Host>);
    let text = "import logging\nfrom core.hooks_registry import hooks_registry\n\
                logging.basicConfig(level=logging.ERROR, format='%(message)s!')\n\
                @hooks_registry.register('on_tool_error')\ndef show(ctx):\n    \
                logging.warning('not this')\n    logging.error(ctx.error)\n";
    stage.add(API, "core/hooks/a.py", text).await;
    send(&stage, failed()).await;
    assert_eq!(heard.lines(1).await, ["missing_required_param: command!"]);
}

// The handler stayed in the registry but was never called.
#[tokio::test]
async fn a_handler_of_morphix_that_is_registered_too_late_is_a_failure_from_then_on() {
    let stage = Stage::new();
    let text = "from core.hooks_registry import hooks_registry\n\
                @hooks_registry.register('on_before_tool')\ndef first(ctx):\n    \
                hooks_registry.register('on_before_tool')(lambda ctx: None)\n";
    stage.add(API, "a.py", text).await;
    for _ in 0..2 {
        let outcome = stage.hooks().dispatch(PreToolUse::default()).await;
        let failures = format!("{:?}", outcome.failures());
        assert!(
            failures.contains("must be registered while the script loads"),
            "{failures}"
        );
    }
}
