//! The built-in `add_context`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenterhook_builtins::builtin::{BuiltinConfig, builtin};
use tenterhook_engine::{AsyncHandler, Call, EventRef, ExchangeSlot, RunNotes};
use tenterhook_runners::Services;
use tokio_util::sync::CancellationToken;

use crate::{event, names, native};

fn make(events: &[&str], templates: &[&str]) -> Result<Arc<dyn AsyncHandler>, String> {
    let arguments: Vec<String> = templates.iter().map(|&text| text.to_owned()).collect();
    let setup = BuiltinConfig {
        arguments: &arguments,
        env: &[],
        working_dir: None,
        services: &Services::default(),
        events: &names(events),
        dialect: &native(),
    };
    builtin("add_context", &setup).map_err(|error| error.to_string())
}

async fn context(handler: &dyn AsyncHandler, event: EventRef) -> Result<Vec<String>, String> {
    let call = Call {
        event,
        timeout: Duration::from_secs(5),
        cancel: CancellationToken::new(),
        exchange: ExchangeSlot::default(),
        notes: RunNotes::default(),
    };
    let answer = handler
        .handle(&call)
        .await
        .map_err(|error| error.to_string())?;
    Ok(answer.map(|effect| effect.context).unwrap_or_default())
}

#[tokio::test]
async fn texts_that_are_not_blank_are_joined() {
    let templates = [
        "{{ prompt }} in {{ cwd }}",
        " {% if false %}x{% endif %}\n",
        "{{ .SessionID }}",
    ];
    let handler = make(&["user_prompt_submit"], &templates).unwrap();
    let prompt = event("user_prompt_submit", json!({"prompt": "hello"}));
    assert_eq!(
        context(&*handler, prompt).await,
        Ok(vec!["hello in /w\ns1".to_owned()])
    );
    let blank = make(&["user_prompt_submit"], &["{{ prompt }}"]).unwrap();
    let empty = event("user_prompt_submit", json!({"prompt": ""}));
    assert_eq!(context(&*blank, empty).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_missing_key_is_a_failure_that_names_the_argument() {
    let handler = make(&["pre_tool_use"], &["fine", "{{ .ToolInput.path }}"]).unwrap();
    let call = event(
        "pre_tool_use",
        json!({"tool_name": "shell", "tool_input": {"cmd": "ls"}}),
    );
    assert_eq!(
        context(&*handler, call).await,
        Err("cannot render argument 1: line 1: there is no key `path`".to_owned())
    );
}

#[test]
fn wrong_arguments_are_refused() {
    for (event, templates, expected) in [
        (
            "turn_start",
            &["ok", "{{ .Cwdd }}"][..],
            "builtin `add_context`: cannot parse argument 1: unknown field `.Cwdd` of `turn_start`, \
             did you mean `cwd`? (line 1, column 4)",
        ),
        (
            "turn_start",
            &["{{ if }}"],
            "builtin `add_context`: cannot parse argument 0: a value is missing (line 1, column 1)",
        ),
        ("turn_start", &[], "expected at least one template"),
        ("stop", &["x"], "`stop` accepts no context"),
    ] {
        let error = make(&[event], templates).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
