//! The list of the hooks in force, as it is now.

use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;
use tenterhook_journal::Redactor;

/// Describes the hooks in force, as `tenterhook list --json` prints them.
type Describe = Box<dyn Fn() -> Value + Send + Sync>;

/// The hooks in force. They can change while the inspector runs, so each request describes them again.
///
/// The page exists before the engine, because a page that cannot be served must stop the program before anything runs.
/// Until [`follow`](Self::follow) is called, the hooks are not known.
#[derive(Default)]
pub struct HookList(OnceLock<Describe>);

impl fmt::Debug for HookList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookList").finish_non_exhaustive()
    }
}

impl HookList {
    /// Shows the hooks that `describe` returns from now on. Only the first call has an effect.
    pub fn follow(&self, describe: impl Fn() -> Value + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(describe));
    }

    /// Returns the hooks without their secrets: a hook's command line may contain one.
    pub(crate) fn current(&self) -> Option<Value> {
        let mut hooks = self.0.get()?();
        Redactor::shared().redact_value(&mut hooks);
        Some(hooks)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tenterhook_engine::Engine;
    use tenterhook_engine::event::PreToolUse;

    use super::*;

    #[test]
    fn a_token_in_the_command_line_of_a_hook_is_not_shown() {
        let token = format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q");
        let handler = format!("command curl -H 'authorization: Bearer {token}' localhost");
        let list = HookList::default();
        assert_eq!(list.current(), None);
        list.follow(move || json!({ "hooks": [{ "name": "guard", "handler": handler }] }));
        let shown = list.current().unwrap().to_string();
        assert!(shown.contains("guard") && shown.contains("curl"), "{shown}");
        assert!(!shown.contains("1x9Q"), "{shown}");
    }

    #[test]
    fn hooks_that_a_reload_adds_are_in_the_list() {
        let engine = Arc::new(Engine::new());
        let list = HookList::default();
        let followed = Arc::clone(&engine);
        list.follow(move || json!({ "hooks": followed.hooks() }));
        assert_eq!(list.current().unwrap()["hooks"], json!([]));
        engine.hook("guard").on(|_: &PreToolUse| ());
        assert_eq!(list.current().unwrap()["hooks"][0]["id"], "guard");
    }
}
