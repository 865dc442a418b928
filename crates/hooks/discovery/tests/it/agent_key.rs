//! The keys of agent files: unknown ones, misplaced ones, those that restrict and those that have no effect; and the
//! other forms in which docker-agent's hooks are written.

use std::fs;

use tenterhook_discovery::{Layers, Loaded, load_files};
use tenterhook_engine::Layer;
use tenterhook_hookfile::{Severity, Toolset};
use tenterhook_trust::Trust;

use crate::{load, loaded, options};

/// Returns each problem of a file as `LINE message [did you mean | what is allowed]`.
fn problems(text: &str) -> Vec<String> {
    let problems = match load("agent.yaml", text) {
        Ok(loaded) => loaded.warnings,
        Err(error) => error.problems,
    };
    let one = |problem: &tenterhook_hookfile::Problem| {
        let line = problem.position.map_or(0, |position| position.line);
        let kind = match problem.severity {
            Severity::Error => "",
            Severity::Warning => " (warning)",
        };
        let meant = problem
            .suggestion
            .as_ref()
            .map(|meant| format!("`{meant}`?"));
        let meant = meant.or_else(|| problem.allowed.clone());
        let meant = meant.map_or_else(String::new, |meant| format!(" [{meant}]"));
        format!("{line}{kind} {}{meant}", problem.message)
    };
    problems.iter().map(one).collect()
}

/// Returns the one problem of a file.
fn problem(text: &str) -> String {
    let found = problems(text);
    let [problem] = found.as_slice() else {
        panic!("{text}: {found:#?}");
    };
    problem.clone()
}

fn events(loaded: &Loaded) -> Vec<&str> {
    let names = loaded
        .specs
        .iter()
        .map(|spec| spec.event.as_ref().unwrap().as_str());
    names.collect()
}

#[test]
fn hoks_below_an_agent_is_an_error_with_did_you_mean() {
    let text =
        "agents:\n  root:\n    hoks: {pre_tool_use: [{hooks: [{type: command, command: exit 2}]}]}";
    assert_eq!(problem(text), "3 unknown key `hoks` [`hooks`?]");
}

#[test]
fn permisions_at_the_top_level_is_an_error_with_did_you_mean() {
    let text = "permisions: {deny: [shell]}\nagents: {root: {model: m}}";
    assert_eq!(problem(text), "1 unknown key `permisions` [`permissions`?]");
}

#[test]
fn hooks_at_the_top_level_are_an_error_that_says_where_they_belong() {
    let text = "agents: {root: {model: m}}\nhooks: {stop: [{type: command, command: cat}]}";
    let expected = "2 misplaced key `hooks` [`agents.NAME.hooks`]";
    assert_eq!(problem(text), expected);
}

#[test]
fn hooks_next_to_agents_are_not_an_agent_called_hooks() {
    let text = "agents:\n  root: {model: m}\n  hooks: {pre_tool_use: []}";
    let expected = "3 expected the name of an agent, found the key `hooks` [`agents.NAME.hooks`]";
    assert_eq!(problem(text), expected);
    let named = "agents: {root: {model: m}, memory: {model: m}}";
    assert_eq!(loaded("agent.yaml", named).agent_files[0].agents.len(), 2);
}

#[test]
fn unknown_and_misplaced_keys_are_found_anywhere() {
    for (text, expected) in [
        (
            "agents: {root: {permissions: {deny: [shell]}}}",
            "misplaced key `permissions` [`permissions` at the top level of the file]",
        ),
        (
            "agents: {root: {pre_tool_use: []}}",
            "misplaced key `pre_tool_use` [`agents.NAME.hooks.pre_tool_use`]",
        ),
        (
            "readonly: true\nagents: {root: {}}",
            "misplaced key `readonly` [`agents.NAME.readonly` or `agents.NAME.toolsets.readonly`]",
        ),
        (
            "agents: {root: {redact_secret: false}}",
            "unknown key `redact_secret` [`redact_secrets`?]",
        ),
        (
            "agents: {root: {max_iteration: 3}}",
            "unknown key `max_iteration` [`max_iterations`?]",
        ),
        (
            "agents: {root: {tool_sets: []}}",
            "unknown key `tool_sets` [`toolsets`?]",
        ),
        (
            "agents: {root: {toolsets: [{type: filesystem, tolls: [read_file]}]}}",
            "unknown key `tolls` [`tools`?]",
        ),
        (
            "agents: {root: {toolsets: [{type: mcp, remot: {url: u}}]}}",
            "unknown key `remot` [`remote`?]",
        ),
        (
            "agents: {root: {toolsets: {type: filesystem}}}",
            "`toolsets` cannot be a mapping [a list of toolsets]",
        ),
        (
            "agents: {root: {toolsets: [{type: filesytem}]}}",
            "unknown toolset `filesytem` [`filesystem`?]",
        ),
        (
            "toolsets: {files: {type: filesystem, readonyl: true}}\nagents: {root: {}}",
            "unknown key `readonyl` [`readonly`?]",
        ),
        (
            "agents: {root: {use_toolsets: [fils]}}\ntoolsets: {files: {type: filesystem}}",
            "unknown toolset `fils` [`files`?]",
        ),
        (
            "models: {m: {provider: x, modle: y}}\nagents: {root: {}}",
            "unknown key `modle` [`model`?]",
        ),
        (
            "agnets: {root: {model: m}}\nmodels: {}",
            "unknown key `agnets` [`agents`?]",
        ),
    ] {
        let found = problems(text);
        let is_found = found.iter().any(|problem| problem.ends_with(expected));
        assert!(is_found, "{text}: {found:#?}");
        assert!(load("agent.yaml", text).is_err(), "{text}");
    }
}

#[test]
fn every_problem_of_a_file_is_reported_at_once() {
    let text = "metdata: {}\nagents:\n  root:\n    modle: m\n    readonly: 'yes'\n  other:\n    budgets: [daily]\n";
    let found = problems(text);
    let lines: Vec<_> = found
        .iter()
        .filter_map(|problem| problem.split(' ').next())
        .collect();
    assert_eq!(lines, ["1", "4", "5", "7"], "{found:#?}");
}

#[test]
fn a_budget_is_refused() {
    for (text, key) in [
        ("budget: {max_cost: 1}\nagents: {root: {}}", "budget"),
        (
            "budgets: {daily: {max_tokens: 9}}\nagents: {root: {}}",
            "budgets",
        ),
        ("agents: {root: {budgets: [daily]}}", "budgets"),
        ("runtime: {sandbox: true}\nagents: {root: {}}", "sandbox"),
        ("agents: {root: {safety: restricted}}", "safety: restricted"),
        (
            "runtime: {safety: strict}\nagents: {root: {}}",
            "safety: strict",
        ),
        (
            "agents: {root: {toolsets: [{type: shell, allowed_domains: [a]}]}}",
            "allowed_domains",
        ),
        (
            "agents: {root: {toolsets: [{type: shell, sandbox: {image: a}}]}}",
            "sandbox",
        ),
    ] {
        let expected = format!("`{key}` restricts the agent, but Tenterhook cannot enforce it");
        let found = problem(text);
        assert!(found.ends_with(&expected), "{text}: {found}");
    }
    for text in [
        "runtime: {sandbox: false}\nagents: {root: {}}",
        "agents: {root: {safety: balanced}}",
        "agents: {root: {toolsets: [{type: fetch, allowed_domains: [a]}]}}",
    ] {
        assert!(load("agent.yaml", text).is_ok(), "{text}");
    }
}

#[test]
fn folders_restrict_file_tools_only() {
    let text = "agents: {root: {toolsets: [{type: shell, deny_list: [.]}]}}";
    let expected = "1 `deny_list` restricts only toolsets of type `filesystem`";
    assert_eq!(problem(text), expected);
    for (list, message) in [
        (
            "allow_list: .",
            "`allow_list` cannot be the string `.` [a list of strings]",
        ),
        (
            "allow_list: [5]",
            "an item of `allow_list` cannot be `5` [a string]",
        ),
        ("deny_list: ['']", "`deny_list` has an empty entry"),
        (
            "deny_list: [$HOME]",
            "`deny_list` contains `$HOME`, which is not a plain path",
        ),
        (
            "deny_list: [src, '**/secret']",
            "`deny_list` contains `**/secret`, which is not a plain path",
        ),
        (
            "allow_list: ['~root/']",
            "`allow_list` contains `~root/`, which is not a plain path",
        ),
        (
            "readonly: 1",
            "`readonly` cannot be `1` [`true` or `false`]",
        ),
    ] {
        let text = format!("agents: {{root: {{toolsets: [{{type: filesystem, {list}}}]}}}}");
        assert_eq!(problem(&text), format!("1 {message}"));
    }
}

#[test]
fn restricting_keys_are_handed_out() {
    let text = "toolsets: {files: {type: filesystem, tools: [read_file], deny_list: [~/.ssh]}}\n\
        agents: {root: {readonly: true, max_consecutive_tool_calls: 2, use_toolsets: [files],\n\
        toolsets: [{type: filesystem, readonly: true, allow_list: [., src]}]}}";
    let loaded = loaded("agent.yaml", text);
    let root = loaded.agent_files[0].root().unwrap();
    assert!(root.read_only);
    assert_eq!(root.max_consecutive_tool_calls, Some(2));
    let [own, shared]: &[Toolset] = root.toolsets.as_ref().unwrap() else {
        panic!("{:?}", root.toolsets)
    };
    assert!(own.read_only);
    assert_eq!(own.allow_list, [".", "src"]);
    assert_eq!(shared.only, Some(vec!["read_file".to_owned()]));
    assert_eq!(shared.deny_list, ["~/.ssh"]);
}

#[test]
fn a_known_key_that_is_not_implemented_is_one_warning() {
    let text = "providers: {p: {base_url: u}}\nagents:\n  root: {num_history_items: 3}\n  other: {num_history_items: 4}";
    assert_eq!(
        problems(text),
        [
            "1 (warning) `providers` has no effect here",
            "3 (warning) `num_history_items` has no effect here",
        ]
    );
    let about = "version: '99'\nmetadata: {author: a, tags: [b]}\nagents: {root: {}}";
    assert_eq!(problems(about), [""; 0]);
}

#[test]
fn one_mapping_stands_for_a_list_of_one() {
    // flex-matcher-mapping, flex-matcher-list-hooks-mapping
    for hooks in [
        "{pre_tool_use: {matcher: shell, hooks: {type: command, command: cat}}}",
        "{pre_tool_use: [{matcher: shell, hooks: {type: command, command: cat}}]}",
        "{pre_tool_use: {matcher: shell, hooks: [{type: command, command: cat}]}}",
    ] {
        let loaded = loaded(
            "agent.yaml",
            &format!("agents: {{root: {{hooks: {hooks}}}}}"),
        );
        let [spec] = loaded.specs.as_slice() else {
            panic!("{hooks}: {:?}", loaded.specs)
        };
        assert!(spec.matcher.matches(Some("shell")) && !spec.matcher.matches(Some("other")));
    }
    let flat = "agents: {root: {hooks: {stop: {type: command, command: cat}}}}";
    assert_eq!(events(&loaded("agent.yaml", flat)), ["stop"]);
}

#[test]
fn a_drop_in_has_events_at_the_top_level() {
    // dropin-docker-form
    let text = "session_start: [{type: command, command: cat}]\n\
        pre_tool_use: {matcher: shell, hooks: {type: command, command: cat}}";
    let loaded = loaded("50-mytool.yaml", text);
    assert_eq!(events(&loaded), ["session_start", "pre_tool_use"]);
    assert!(loaded.specs.iter().all(|spec| spec.agent.is_none()));
    assert!(loaded.agent_files.is_empty());
    assert!(loaded.wired.is_empty());
    let error = load("a.yaml", "sesion_start: []\nstop: []").unwrap_err();
    assert_eq!(
        error.problems[0].suggestion.as_deref(),
        Some("session_start")
    );
}

#[test]
fn the_settings_of_a_user_have_hooks_for_every_agent() {
    let text = "version: v1\nsettings: {theme: dark, hooks: {stop: {type: command, command: cat}}}";
    let loaded = loaded("config.yaml", text);
    assert_eq!(events(&loaded), ["stop"]);
    for (text, message) in [
        ("settings: {hoks: {}}", "1 unknown key `hoks` [`hooks`?]"),
        (
            "settings: {permissions: {deny: [shell]}}",
            "1 `permissions` restricts the agent, but Tenterhook cannot enforce it",
        ),
    ] {
        assert_eq!(problem(text), message);
    }
}

#[test]
fn a_folder_in_hooks_d_is_passed_over_whatever_it_is_called() {
    // dropin-others-ignored
    let home = tempfile::tempdir().unwrap();
    let hooks = home.path().join("hooks.d");
    fs::create_dir_all(hooks.join("sub.yaml")).unwrap();
    fs::write(hooks.join("notes.txt"), "not hooks").unwrap();
    fs::write(hooks.join("a.yaml"), "stop: {type: command, command: cat}").unwrap();
    let layers = Layers {
        user: Some(home.path().to_owned()),
        ..Layers::default()
    };
    let files = layers.hook_files(&Trust::default());
    assert_eq!(files, [(hooks.join("a.yaml"), Layer::User)]);
    let loaded = load_files(files, &options()).unwrap();
    assert_eq!(events(&loaded), ["stop"]);
}
