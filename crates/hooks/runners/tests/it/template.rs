//! Templates over events.

use proptest::prelude::{Strategy, prop, proptest};
use serde_json::json;
use tenterhook_engine::EventRef;
use tenterhook_runners::template::{MissingKey, Template, TemplateError, TemplateScope};
use tenterhook_systems::docker_agent::DockerAgent;

use crate::table::{code, rows};
use crate::{event, names, native};

const PAGE: &str = include_str!("../../../../../docs/reference/builtins.md");

/// The event that the page describes.
fn call() -> EventRef {
    event(
        "post_tool_use",
        json!({
            "tool_name": "shell",
            "tool_use_id": "c1",
            "tool_input": {"cmd": "ls -l", "count": 3, "list": ["a", "b"], "big": true, "note": null},
            "result": {"content": [{"type": "text", "text": "ok"}], "is_error": false},
        }),
    )
}

fn parse(source: &str, missing: MissingKey) -> Result<Template, TemplateError> {
    let scope = TemplateScope::new(native(), &names(&["post_tool_use"]));
    Template::parse(source, &scope, missing, 1 << 10)
}

fn render(source: &str, missing: MissingKey) -> Result<String, String> {
    let template = parse(source, missing).map_err(|error| error.to_string())?;
    template.render(&call()).map_err(|error| error.to_string())
}

#[test]
fn every_row_of_the_page_is_as_it_says() {
    let rows = rows(PAGE, "| template | text |");
    assert!(rows.len() > 35, "{}", rows.len());
    for row in rows {
        let source = code(&row[0]).unwrap_or_else(|| panic!("{row:?}"));
        if let Some(text) = code(&row[1]) {
            for missing in [MissingKey::Printed, MissingKey::Failure] {
                let is_asked = source.contains("gone") && missing == MissingKey::Failure;
                if !is_asked {
                    assert_eq!(render(source, missing).as_deref(), Ok(text), "{source}");
                }
            }
        } else {
            assert_eq!(
                render(source, MissingKey::Printed).as_deref(),
                Ok("<no value>")
            );
            let failure = "line 1: there is no key `gone`".to_owned();
            assert_eq!(render(source, MissingKey::Failure), Err(failure));
        }
    }
}

#[test]
fn the_own_syntax_sees_the_same_keys() {
    for (source, expected) in [
        (
            "{{ tool_name }} in {{ cwd }} of {{ session_id }}",
            "shell in /w of s1",
        ),
        ("{{ tool_input.cmd }}", "ls -l"),
        (
            "{{ tool_input | tojson }}",
            r#"{"big":true,"cmd":"ls -l","count":3,"list":["a","b"],"note":null}"#,
        ),
        ("{{ tool_response | truncate(1) }}", "o…"),
        (
            "{% for x in tool_input.list %}[{{ x }}{{ loop.index }}]{% endfor %}",
            "[a1][b2]",
        ),
        (
            "{% if tool_error %}bad{% elif tool_name == 'shell' %}good{% endif %}",
            "good",
        ),
        ("{{ tool_input.gone | default('none') }}", "none"),
        (
            "{% if tool_input.gone is defined %}a{% else %}b{% endif %}",
            "b",
        ),
        (
            "{{ tool_input.list | first | upper }}{{ tool_input.list | length }}",
            "A2",
        ),
        ("{{ result.content[0].text }}", "ok"),
        ("{{ workspace }}|{{ recipe }}", "|"),
        ("plain", "plain"),
    ] {
        assert_eq!(
            render(source, MissingKey::Failure).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

// D-94
#[test]
fn a_truncated_text_keeps_whole_characters_and_says_that_it_was_cut() {
    for (source, expected) in [
        (
            r#"{{ truncate 16 "0123456789abcdefg" }}"#,
            "0123456789abcdef…",
        ),
        (
            r#"{{ truncate 16 "0123456789abcdef" }}"#,
            "0123456789abcdef",
        ),
        (
            r#"{{ truncate 16 "0123456789abcdeéé" }}"#,
            "0123456789abcde…",
        ),
        (r#"{{ truncate 0 "a" }}"#, "…"),
    ] {
        assert_eq!(
            render(source, MissingKey::Printed).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn every_refused_row_of_the_page_is_refused_where_it_is_wrong() {
    let rows = rows(PAGE, "| template | column | refused because |");
    assert!(rows.len() > 25, "{}", rows.len());
    for row in rows {
        let source = code(&row[0]).unwrap_or_else(|| panic!("{row:?}"));
        let error = parse(source, MissingKey::Printed).unwrap_err();
        let found = (error.line, error.column.to_string(), error.message);
        assert_eq!(found, (1, row[1].clone(), row[2].clone()), "{source}");
    }
}

#[test]
fn a_mistake_on_a_later_line_is_found_there() {
    for source in ["a\n  {{ .Weather }}", "a\n  {{ weather }}"] {
        let error = parse(source, MissingKey::Printed).unwrap_err();
        assert_eq!((error.line, error.column), (2, 6), "{source}");
        let allowed = error.allowed.unwrap();
        assert!(allowed.contains("`tool_name`, "), "{allowed}");
    }
}

#[test]
fn a_template_that_cannot_be_rendered_says_where() {
    for (source, expected) in [
        ("a\n{{ .ToolInput.cmd.x }}", "line 2: a string has no `x`"),
        (
            "{{ index .ToolInput.list 7 }}",
            "line 1: the list has no item 7",
        ),
        (
            "{{ lt .ToolName 3 }}",
            "line 1: a string cannot be compared with a number",
        ),
        (
            "{{ range .ToolName }}{{ end }}",
            "line 1: `range` cannot iterate over a string",
        ),
        (
            "{{ len .ToolInput.count }}",
            "line 1: a number has no length",
        ),
        (
            "{{ printf \"%d\" .ToolName }}",
            "line 1: `%d` cannot print a string",
        ),
        (
            "{{ truncate -1 .ToolName }}",
            "line 1: `truncate` cannot keep -1 bytes",
        ),
        (
            "{{ .ToolInput.note }}",
            "line 1: there is no value to print",
        ),
        (
            "{{ truncate 3 .ToolInput.note }}",
            "line 1: there is no value to print",
        ),
        (
            "{{ printf \"%v\" .ToolInput.note }}",
            "line 1: there is no value to print",
        ),
        (
            "x\n{{ tool_input.gone }}",
            "line 2: `tool_input.gone` has no value",
        ),
    ] {
        assert_eq!(
            render(source, MissingKey::Failure),
            Err(expected.to_owned()),
            "{source}"
        );
    }
}

#[test]
fn a_text_over_the_limit_and_a_loop_without_end_in_sight_are_failures() {
    let long = format!("{}{{{{ tool_name }}}}", "x".repeat(1 << 10));
    assert_eq!(
        render(&long, MissingKey::Printed),
        Err("the text is longer than 1 KiB".to_owned())
    );
    let loops = "{% for a in list %}"
        .replace("list", "[1,2,3,4,5,6,7,8,9,10]")
        .repeat(7);
    let source = format!("{loops}{}", "{% endfor %}".repeat(7));
    assert_eq!(
        render(&source, MissingKey::Printed),
        Err("the template takes too much work".to_owned())
    );
    let error = parse(&" ".repeat((64 << 10) + 1), MissingKey::Printed).unwrap_err();
    assert_eq!(error.message, "the template is too long");
    for deep in [
        "{{ if .Cwd }}".repeat(200),
        format!("{{{{ .Cwd | eq {} }}}}", "(".repeat(200)),
    ] {
        let error = parse(&deep, MissingKey::Printed).unwrap_err();
        assert!(error.message.contains("too deep"), "{error}");
    }
}

#[test]
fn names_of_an_agent_file_are_those_of_its_contract() {
    let scope = TemplateScope::new(DockerAgent::agent_file(), &names(&["post_tool_use"]));
    let parse = |source| Template::parse(source, &scope, MissingKey::Printed, 1 << 10);
    let template = parse("{{ .HookEventName }}: {{ .ToolResponse }}").unwrap();
    assert_eq!(template.render(&call()).unwrap(), "post_tool_use: ok");
    assert!(parse("{{ .Result }}").is_err());
    let whole = parse("{{ toJSON . }}").unwrap().render(&call()).unwrap();
    assert!(
        whole.starts_with(r#"{"agent_name":"root","cwd":"/w""#),
        "{whole}"
    );
}

#[test]
fn an_open_payload_may_have_any_key() {
    let scope = TemplateScope::new(native(), &names(&["x-acme.deploy"]));
    let open = event("x-acme.deploy", json!({"target": "production"}));
    for (source, expected) in [
        ("{{ .Target }} {{ .Other }}", "production <no value>"),
        ("{{ target }} {{ other }}", "production <no value>"),
    ] {
        let template = Template::parse(source, &scope, MissingKey::Printed, 1 << 10).unwrap();
        assert_eq!(template.render(&open).unwrap(), expected);
    }
}

#[test]
fn a_hook_of_several_events_may_name_the_keys_of_each() {
    let scope = TemplateScope::new(native(), &names(&["user_prompt_submit", "post_tool_use"]));
    let source = "{{ .Prompt }}{{ .ToolName }}";
    let template = Template::parse(source, &scope, MissingKey::Failure, 1 << 10).unwrap();
    assert_eq!(template.render(&call()).unwrap(), "shell");
    let prompt = event("user_prompt_submit", json!({"prompt": "hello"}));
    assert_eq!(template.render(&prompt).unwrap(), "hello");
}

#[test]
fn every_character_of_a_text_is_kept() {
    let text: String = (0..0x300)
        .filter_map(char::from_u32)
        .filter(|c| !"{}".contains(*c))
        .collect();
    let source = format!("{text}{{{{ .ToolName }}}}\u{2028}\u{1f916}");
    let expected = format!("{text}shell\u{2028}\u{1f916}");
    let scope = TemplateScope::new(native(), &names(&["post_tool_use"]));
    let template = Template::parse(&source, &scope, MissingKey::Failure, 1 << 13).unwrap();
    assert_eq!(template.render(&call()).unwrap(), expected);
}

/// Generates texts from parts of templates, in any order.
fn scraps() -> impl Strategy<Value = String> {
    let scraps = prop::sample::select(vec![
        "{{",
        "}}",
        "{{-",
        "-}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "/*",
        "*/",
        " ",
        "\n",
        ".",
        "$",
        "|",
        "(",
        ")",
        ",",
        ":=",
        "\"",
        "`",
        "'",
        "\\",
        "if",
        "else",
        "end",
        "range",
        "with",
        "for x in",
        "endif",
        "endfor",
        "eq",
        "index",
        "printf",
        "truncate",
        "toJSON",
        "tojson",
        ".ToolInput",
        ".ToolName",
        "tool_name",
        "tool_input",
        "$x",
        "5",
        "-1",
        "é",
        "x",
        "%s",
    ]);
    prop::collection::vec(scraps, 0..24).prop_map(|scraps| scraps.concat())
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(source in scraps()) {
        for missing in [MissingKey::Printed, MissingKey::Failure] {
            if let Ok(template) = parse(&source, missing) {
                let _rendered = template.render(&call());
            }
        }
    }

    #[test]
    fn text_around_actions_stays_as_it_is(before in "[^{}]{0,40}", after in "[^{}]{0,40}") {
        let source = format!("{before}{{{{ .ToolName }}}}{after}");
        let expected = format!("{before}shell{after}");
        assert_eq!(render(&source, MissingKey::Printed), Ok(expected));
    }
}
