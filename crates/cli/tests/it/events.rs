//! `tenterhook events`.

use serde_json::{Value, json};

use crate::stage::{Ran, Test};

fn events(args: &[&str]) -> Ran {
    let args = args.iter().copied();
    Test::new().args(["events"]).args(args).run()
}

#[test]
fn the_list_has_every_event_with_its_class_and_its_meaning() {
    let ran = events(&[]);
    let (stdout, stderr, status) = ran.all();
    assert_eq!((stderr, status), ("", 0));
    for line in [
        "Tool events",
        "  pre_tool_use               gate      Fires before a tool runs.",
        "  x-<vendor>.<name>          gate ",
        "* channel_connect            ",
        "  *         `tenterhook run` never fires it.",
        "`tenterhook events NAME` shows one event.",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
    assert!(stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn the_list_in_json_has_one_object_for_each_event() {
    let report = events(&["--json"]).json();
    let events = report["events"].as_array().unwrap();
    let of = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
    assert_eq!(of("pre_tool_use")["class"], "gate");
    assert_eq!(of("pre_tool_use")["fired_by_run"], true);
    assert_eq!(of("channel_connect")["fired_by_run"], false);
    assert_eq!(of("channel_connect")["fired_by_gateway"], true);
    assert_eq!(of("file_change")["fired_by_gateway"], false);
    assert_eq!(of("tool_error")["group"], "tool");
}

#[test]
fn a_page_says_when_an_event_fires_what_it_carries_and_what_hooks_may_answer() {
    let ran = events(&["pre_tool_use"]);
    let (stdout, stderr, status) = ran.all();
    assert_eq!((stderr, status), ("", 0));
    for line in [
        "pre_tool_use\n",
        "When it fires\n",
        "  tool_name      string, required. ",
        "  attempt        integer, default 1. ",
        "    \"tool_name\": \"shell\",\n",
        "    { \"decision\": \"deny\", \"reason\": \"Deploy from the main branch only.\" }\n",
        "If a hook fails\n",
        "  pi                  tool_call\n",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
}

#[test]
fn every_systems_name_leads_to_the_page() {
    for (name, sentence) in [
        (
            "before_tool_call",
            "`before_tool_call` is the name of `pre_tool_use` in kodelet.\n\n",
        ),
        (
            "tool_call",
            "`tool_call` is the name of `pre_tool_use` in operator and pi.\n\n",
        ),
        (
            "PreToolUse",
            "`PreToolUse` is `pre_tool_use` in Tenterhook.\n\n",
        ),
        ("pre_tool_use", ""),
    ] {
        let ran = events(&[name]);
        let (stdout, stderr, status) = ran.all();
        assert_eq!((stderr, status), ("", 0), "{name}");
        let start = format!("{sentence}pre_tool_use\n  ");
        assert!(stdout.starts_with(&start), "{stdout}");
    }
    let custom = events(&["x-acme.deploy"]);
    assert!(custom.all().0.starts_with("x-<vendor>.<name>\n"));
}

#[test]
fn a_page_in_json_has_the_schema_an_example_and_answers_that_fire_accepts() {
    let report = events(&["tool_call", "--json"]).json();
    assert_eq!(report["name"], "pre_tool_use");
    assert_eq!(
        report["found_by"],
        json!({ "name": "tool_call", "systems": ["operator", "pi"] })
    );
    assert_eq!(report["schema"]["title"], "PreToolUse");
    let answers = report["answers"].as_array().unwrap();
    let deny = answers.iter().find(|answer| answer["part"] == "permission");
    let deny = deny.unwrap()["answer"].to_string();
    // What the page shows works: a hook that prints the example denies the example.
    let hook = format!(
        "hooks: [{{event: pre_tool_use, command: \"echo '{}'\"}}]",
        deny.replace('"', "\\\"")
    );
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--json", "--input", "event.json"])
        .file("event.json", &report["example"].to_string())
        .hooks(&hook)
        .run();
    let fired: Value = ran.json();
    assert_eq!(fired["decision"], "stop");
    assert_eq!(fired["reason"], "Deploy from the main branch only.");
}

#[test]
fn the_schema_alone_is_a_json_schema() {
    let schema = events(&["--schema", "turn_end"]).json();
    assert_eq!(schema["title"], "TurnEnd");
    assert!(schema["properties"]["tool_results"].is_object());
}

#[test]
fn an_unknown_name_is_a_usage_error_with_a_hint() {
    let ran = events(&["pre_tol_use"]);
    let expected = "error: unknown event `pre_tol_use`\nhint: did you mean `pre_tool_use`?\n";
    assert_eq!(ran.all(), ("", expected, 64));
    let ran = events(&["before_toolcall"]);
    let expected = "error: unknown event `before_toolcall`\n\
                    hint: did you mean `pre_tool_use`, which is `before_tool_call` in kodelet?\n";
    assert_eq!(ran.all(), ("", expected, 64));
    let ran = events(&["after_provider_response"]);
    let expected = "error: `after_provider_response` is the name of 2 events\n\
                    hint: choose one: `after_llm_call` (operator), `provider_response` (pi)\n";
    assert_eq!(ran.all(), ("", expected, 64));
    assert_eq!(events(&["--schema"]).all().2, 64);
}

#[test]
fn the_examples_in_the_reference_are_what_the_program_prints() {
    for page in [
        include_str!("../../../../docs/reference/events.md"),
        include_str!("../../../../docs/reference/names.md"),
    ] {
        let (_, example) = page.split_once("\n$ tenterhook events ").unwrap();
        let (name, output) = example.split_once('\n').unwrap();
        let first = output.lines().next().unwrap();
        assert!(events(&[name]).all().0.starts_with(first), "{name}");
    }
}
