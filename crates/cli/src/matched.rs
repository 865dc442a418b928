//! Matchers that match no tool: a guard for `shel` guards nothing.

use std::collections::BTreeSet;

use tenterhook::HookSpec;
use tenterhook_agent::Toolbox;

/// Tools of the agent that it has only for other agents' work.
const FOR_AGENTS: &[&str] = &[
    "transfer_task",
    "run_background_agent",
    "list_background_agents",
    "view_background_agent",
    "stop_background_agent",
];

/// What other hook systems call their built-in tools.
const OF_SYSTEMS: &[&str] = &[
    // docker-agent
    "shell",
    "run_shell_background",
    "list_background_jobs",
    "view_background_job",
    "stop_background_job",
    "read_file",
    "read_multiple_files",
    "write_file",
    "edit_file",
    "list_directory",
    "directory_tree",
    "search_files_content",
    "search_files",
    "create_directory",
    "move_file",
    "fetch",
    "think",
    // kodelet
    "bash",
    "file_read",
    "file_write",
    "file_edit",
    "apply_patch",
    "grep_tool",
    "glob_tool",
    "web_fetch",
    "subagent",
    "view_image",
    "image_recognition",
    "todo_read",
    "todo_write",
    // Operator
    "terminal",
    "read",
    "write",
    "ls",
    "grep",
    "glob",
    "patch_file",
    "web_search",
    // morphix
    "bash_manager",
    "file_manager",
    "diff_editor",
    "python_repl",
    // pi
    "edit",
    "find",
    // Claude Code and those that follow it
    "Bash",
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    "WebSearch",
    "Task",
    "TodoWrite",
];

/// Returns a warning for each hook of a tool event whose matcher matches no tool that is known: those of the agent, those
/// of scripts and extensions, and those of other systems. What MCP servers have is not known.
pub(crate) fn unmatched(specs: &[HookSpec], tools: &[String]) -> Vec<String> {
    let standard = Toolbox::standard();
    let own: Vec<&str> = standard
        .names()
        .chain(FOR_AGENTS.iter().copied())
        .chain(tools.iter().map(String::as_str))
        .collect();
    let known: BTreeSet<&str> = own.iter().chain(OF_SYSTEMS).copied().collect();
    let mut warnings = Vec::new();
    for spec in specs {
        let Some(event) = &spec.event else {
            continue;
        };
        let is_of_tools = event.info().subject == Some("tool_name");
        let is_unknowable = spec.matcher.as_str().contains("mcp");
        if !is_of_tools
            || is_unknowable
            || spec.matcher.is_everything()
            || known.iter().any(|name| spec.matcher.matches(Some(name)))
        {
            continue;
        }
        let matcher = spec.matcher.as_str();
        let meant = nearest(matcher, &own).map(|name| format!("; did you mean `{name}`?"));
        warnings.push(format!(
            "{}: the matcher `{matcher}` of `{}` matches no known tool{}",
            spec.source,
            spec.id,
            meant.unwrap_or_default()
        ));
    }
    warnings
}

/// Returns the known name that is most like a matcher.
fn nearest<'a>(matcher: &str, known: &[&'a str]) -> Option<&'a str> {
    let words = matcher.split(|c: char| !c.is_alphanumeric() && c != '_');
    let scores = words.filter(|word| !word.is_empty()).flat_map(|word| {
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

    use tenterhook::Layer;
    use tenterhook_config::load_text;

    use super::*;

    #[test]
    fn a_matcher_of_no_known_tool_is_told_with_the_nearest_one() {
        let file = |matcher: &str| {
            let text = format!(
                "hooks:\n  - {{name: guard, event: pre_tool_use, matcher: '{matcher}', command: cat}}\n"
            );
            let options = crate::hooks::options(false, tenterhook_handlers::Services::default());
            load_text(Path::new("a.yaml"), &text, Layer::Explicit, &options).unwrap()
        };
        let tools = ["deploy".to_owned()];
        for (matcher, expected) in [
            ("shell", None),
            ("*", None),
            ("write_.*", None),
            ("bash", None),
            ("deploy", None),
            ("mcp__github__.*", None),
            ("shel", Some("matches no known tool; did you mean `shell`?")),
            ("shel|writ_file", Some("did you mean `write_file`?")),
            (
                "zzz",
                Some("the matcher `zzz` of `guard` matches no known tool"),
            ),
        ] {
            let warnings = unmatched(&file(matcher).specs, &tools);
            match expected {
                None => assert_eq!(warnings, [""; 0], "{matcher}"),
                Some(expected) => assert!(warnings[0].contains(expected), "{warnings:?}"),
            }
        }
    }
}
