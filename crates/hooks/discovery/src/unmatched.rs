//! Finds names that match no tool or agent, because a guard for `shel` guards nothing.

use std::collections::BTreeSet;
use std::fmt;

use tenterhook_engine::{HookSpec, NATIVE_SYSTEM};
use tenterhook_systems::tools;

/// The name of an agent that is not given one.
const ROOT: &str = "root";

/// A hook that never runs, because its matcher matches no known tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedHook {
    hook: String,
    source: String,
    matcher: String,
    /// The known name that is most similar to the matcher, if one is similar enough.
    pub meant: Option<String>,
}

impl fmt::Display for UnmatchedHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            hook,
            source,
            matcher,
            meant,
        } = self;
        write!(
            f,
            "{source}: the matcher `{matcher}` of `{hook}` matches no known tool"
        )?;
        match meant {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

/// Returns each hook of a tool event whose matcher matches no known tool. `own` are the names of the
/// agent's tools. A hook of another system knows them under the names of its system. The tools of MCP servers are
/// not known here, so matchers for them are not checked.
pub fn unmatched_hooks(specs: &[HookSpec], own: &[&str]) -> Vec<UnmatchedHook> {
    let mut unmatched = Vec::new();
    for spec in specs {
        let Some(event) = &spec.event else {
            continue;
        };
        let is_of_tools = event.info().subject == Some("tool_name");
        let is_unknowable = spec.matcher.as_str().contains("mcp");
        if !is_of_tools || is_unknowable || spec.matcher.is_everything() {
            continue;
        }
        let known = known_to(spec, own);
        let matcher = spec.matcher.as_str();
        // In a list of words, each word must name a tool.
        let is_list = matcher
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '|'));
        let is_known = if is_list {
            matcher.split('|').all(|word| known.contains(word))
        } else {
            known.iter().any(|name| spec.matcher.matches(Some(name)))
        };
        if is_known {
            continue;
        }
        unmatched.push(UnmatchedHook {
            hook: spec.id.to_string(),
            source: spec.source.to_string(),
            matcher: matcher.to_owned(),
            meant: nearest(matcher, &known).map(str::to_owned),
        });
    }
    unmatched
}

/// Returns a warning for the name of a tool that may be misspelt. Any other unknown name may belong to a tool of the
/// host.
pub fn unknown_tool(tool: &str) -> Option<String> {
    let known = tools::known_tool_names();
    if known.contains(tool) || tools::canonical_tool(tool).is_some() {
        return None;
    }
    let score = |name: &str| strsim::jaro_winkler(&tool.to_lowercase(), name);
    let nearest = known
        .into_iter()
        .max_by(|a, b| score(a).total_cmp(&score(b)));
    let nearest = nearest.filter(|name| score(name) > 0.85)?;
    Some(format!("unknown tool `{tool}`; did you mean `{nearest}`?"))
}

/// Returns a warning for each hook whose agent looks like a misspelt `root`, because such a hook never runs. Other
/// names cannot be checked here: each program chooses the names of its agents.
pub fn misspelt_agents(specs: &[HookSpec]) -> Vec<String> {
    let known = BTreeSet::from([ROOT]);
    let misspelt = |agent: &str| agent != ROOT && nearest(agent, &known).is_some();
    let warning = |spec: &HookSpec| {
        let agent = spec.agent.as_deref().filter(|agent| misspelt(agent))?;
        Some(format!(
            "{}: `{}` is for the agent `{agent}`; did you mean `{ROOT}`?",
            spec.source, spec.id
        ))
    };
    specs.iter().filter_map(warning).collect()
}

/// Returns the names under which a hook may see a tool. A native matcher finds a tool by any system's name, a matcher
/// of another system only by that system's names.
fn known_to<'a>(spec: &HookSpec, own: &[&'a str]) -> BTreeSet<&'a str> {
    let Some(system) = &spec.tools else {
        return tools::known_tool_names()
            .into_iter()
            .chain(own.iter().copied())
            .collect();
    };
    let seen = own.iter().flat_map(|name| {
        let names = system.names(tools::canonical_name(NATIVE_SYSTEM, name));
        if names.is_empty() { vec![*name] } else { names }
    });
    let rows = tools::rows(system.system()).iter().map(|row| row.name);
    seen.chain(rows).collect()
}

/// Returns the known name that is most similar to an unknown word of a matcher.
fn nearest<'a>(matcher: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    let words = matcher.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_unknown = |word: &&str| !word.is_empty() && !known.contains(*word);
    let scores = words.filter(is_unknown).flat_map(|word| {
        let word = word.to_lowercase();
        known
            .iter()
            .map(move |name| (strsim::jaro_winkler(&word, name), *name))
    });
    scores
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::load_text;
    use tenterhook_engine::{EventKind, Layer, Matcher};
    use tenterhook_process::{Command, Program};
    use tenterhook_runners::CommandHandler;
    use tenterhook_systems::native::Native;

    use super::*;

    fn texts(specs: &[HookSpec], own: &[&str]) -> Vec<String> {
        let unmatched = unmatched_hooks(specs, own);
        unmatched.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_matcher_of_no_known_tool_is_told_with_the_nearest_one() {
        let file = |matcher: &str| {
            let text = format!(
                "hooks:\n  - {{name: guard, event: pre_tool_use, matcher: '{matcher}', command: cat}}\n"
            );
            let options = crate::LoadOptions::of_process();
            load_text(Path::new("a.yaml"), &text, Layer::Explicit, &options).unwrap()
        };
        let own = ["shell", "edit_file", "write_file", "deploy"];
        for (matcher, expected) in [
            ("shell", None),
            ("*", None),
            ("write_.*", None),
            ("bash", None),
            ("bash_manager", None),
            ("Bash", None),
            ("BASH", Some("did you mean `")),
            ("deploy", None),
            ("mcp__github__.*", None),
            ("shel", Some("matches no known tool; did you mean `shell`?")),
            ("shel|writ_file", Some("did you mean `shell`?")),
            ("edit_file|shel", Some("did you mean `shell`?")),
            (
                "zzz",
                Some("the matcher `zzz` of `guard` matches no known tool"),
            ),
        ] {
            let warnings = texts(&file(matcher).specs, &own);
            match expected {
                None => assert_eq!(warnings, [""; 0], "{matcher}"),
                Some(expected) => assert!(warnings[0].contains(expected), "{warnings:?}"),
            }
        }
    }

    #[test]
    fn a_hook_for_a_misspelt_agent_is_told() {
        for (agent, is_misspelt) in [("root", false), ("rooot", true), ("reviewer", false)] {
            let text = format!("hooks: [{{event: stop, agent: {agent}, command: cat}}]");
            let options = crate::LoadOptions::of_process();
            let loaded = load_text(Path::new("a.yaml"), &text, Layer::Explicit, &options).unwrap();
            let warnings = misspelt_agents(&loaded.specs);
            assert_eq!(!warnings.is_empty(), is_misspelt, "{agent}: {warnings:?}");
        }
    }

    #[test]
    fn a_hook_of_another_system_knows_the_names_of_that_system_only() {
        for (matcher, is_known) in [
            ("bash", true),
            ("file_read", true),
            ("deploy", true),
            ("shell", false),
            ("terminal", false),
        ] {
            let handler = Arc::new(CommandHandler::new(
                Command::new(Program::shell("cat")),
                "cat",
                Native::new(),
            ));
            let spec = HookSpec {
                matcher: Matcher::parse(matcher).unwrap(),
                tools: tools::of("kodelet"),
                ..HookSpec::new(EventKind::PreToolUse, "guard", handler)
            };
            let warnings = texts(&[spec], &["shell", "read_file", "deploy"]);
            assert_eq!(warnings.is_empty(), is_known, "{matcher}: {warnings:?}");
        }
    }

    #[test]
    fn a_misspelt_tool_is_reported_with_the_nearest_one() {
        for (tool, expected) in [
            ("shell", None),
            ("deploy", None),
            ("file_read", None),
            ("shel", Some("did you mean `shell`?")),
            ("Bash", None),
            ("BASH", Some("did you mean `bash`?")),
        ] {
            let warning = unknown_tool(tool);
            match expected {
                None => assert_eq!(warning, None, "{tool}"),
                Some(expected) => {
                    let warning = warning.unwrap();
                    assert!(warning.contains(expected), "{tool}: {warning}");
                }
            }
        }
    }
}
