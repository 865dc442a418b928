//! A program instead of a person: the events that it reads, and the methods that it may call.

use std::fs;

use serde_json::json;

use crate::client::Client;
use crate::stage::{Test, eventually, is_alive, json_lines, without_denial_id};

fn run() -> Test {
    Test::new().args(["run", "--no-journal"])
}

#[test]
fn print_prints_the_answer_and_nothing_else() {
    let ran = run()
        .args(["-p", "go", "--yes"])
        .script(
            "\
turns:
  - text: Let me look.
    tool_calls: [{name: shell, arguments: {cmd: rm -rf x}}]
  - text: \"The **answer**.\\n\"
",
        )
        .hooks("hooks: [{event: pre_tool_use, name: no-rm, command: echo not here >&2; exit 2}]")
        .run();
    assert_eq!(
        (
            ran.stdout.as_str(),
            without_denial_id(&ran.stderr).as_str(),
            ran.status
        ),
        (
            "The **answer**.\n",
            "shell:  denied by hook `no-rm` (pre_tool_use): not here\n    \
             If this was wrong, the user can run `tenterhook allow [ID] --once`.\n",
            0
        )
    );
}

#[test]
fn the_formats_of_the_output_exclude_each_other_where_they_must() {
    for (args, words) in [
        (
            &["--output-format", "xml"][..],
            "[possible values: text, json, jsonl]",
        ),
        (
            &["--json", "--output-format", "text"],
            "cannot be used with",
        ),
        (
            &["--timeline", "--output-format", "jsonl"],
            "cannot be used with",
        ),
        (&["--timeline", "-p"], "cannot be used with"),
        (&["--mode", "rpc", "--json"], "cannot be used with"),
        (&["--mode", "rpc", "hello"], "cannot be used with"),
    ] {
        let ran = run()
            .args(args.iter().copied())
            .script("turns: [{text: hi}]")
            .run();
        let (text, status) = ran.refusal();
        assert!(status == 64 && text.contains(words), "{args:?}: {text}");
    }
}

#[test]
fn json_is_the_same_report_by_both_its_names() {
    let report = |args: &[&str]| {
        let ran = run()
            .args(["go"])
            .args(args.iter().copied())
            .script("turns: [{text: hi}]")
            .run();
        let mut report = ran.json();
        report["session_id"].take();
        report
    };
    assert_eq!(report(&["--json"]), report(&["--output-format", "json"]));
}

#[test]
fn a_program_that_follows_reads_every_event_and_the_report() {
    let ran = run()
        .args(["go", "--yes", "--output-format", "jsonl"])
        .script(
            "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: echo hi}}]\n  - text: done\n",
        )
        .run();
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    let lines = json_lines(&ran.stdout);
    let (last, events) = lines.split_last().unwrap();
    assert_eq!(
        (&last["type"], &last["end"]),
        (&json!("report"), &json!("completed"))
    );
    let names: Vec<&str> = events
        .iter()
        .map(|it| it["event"].as_str().unwrap())
        .collect();
    for expected in [
        "session_start",
        "pre_tool_use",
        "message_update",
        "session_end",
    ] {
        assert!(names.contains(&expected), "{expected} in {names:?}");
    }
    for event in events {
        assert_eq!(event["session_id"], last["session_id"], "{event}");
        assert!(event["sequence"].is_u64(), "{event}");
    }
    let call = events
        .iter()
        .find(|it| it["event"] == "pre_tool_use")
        .unwrap();
    assert_eq!(call["tool_input"], json!({"cmd": "echo hi"}));
}

// E11: text that a hook may still change is not streamed.
#[test]
fn a_program_that_follows_reads_what_running_tools_have_where_no_hook_may_change_results() {
    for (hook, is_told) in [
        ("hooks: []", true),
        (
            "hooks: [{event: post_tool_use, command: cat, phase: observe}]",
            true,
        ),
        ("hooks: [{event: post_tool_use, command: \"true\"}]", false),
        (
            "hooks: [{event: tool_response_transform, command: \"true\"}]",
            false,
        ),
    ] {
        let ran = run()
            .args(["go", "--yes", "--output-format", "jsonl"])
            .script(
                "turns: [{tool_calls: [{name: shell, arguments: {cmd: echo hi}}]}, {text: done}]",
            )
            .hooks(hook)
            .run();
        assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
        let mut updates = json_lines(&ran.stdout);
        updates.retain(|line| line["event"] == "tool_execution_update");
        let partial = &updates.first().unwrap()["partial_result"];
        let content = if is_told {
            json!([{"type": "text", "text": "hi\n"}])
        } else {
            json!([])
        };
        assert_eq!(partial["content"], content, "{hook}");
    }
}

#[test]
fn what_a_program_follows_is_not_in_the_journal() {
    let ran = Test::new()
        .args([
            "run",
            "go",
            "--journal",
            "journal.jsonl",
            "--output-format",
            "jsonl",
        ])
        .script("turns: [{text: hi}]")
        .hooks("hooks: [{event: session_start, name: own, command: \"true\"}]")
        .run();
    let mut records = ran.lines("journal.jsonl");
    // Model calls belong to no event.
    records.retain(|record| record["record"] != "model_call");
    assert!(!records.is_empty());
    for record in records {
        assert_eq!(record["event"], "session_start", "{record}");
        assert_ne!(record["hook"], "feed");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_run_in_good_order() {
    let mut running = run()
        .args(["go", "--yes", "--output-format", "jsonl"])
        .script(
            "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: \"echo $$ > pid; until test -e go; do sleep 0.01; done\"}}]
  - tool_calls: [{name: shell, arguments: {cmd: sleep 300}}]
",
        )
        .hooks("hooks: [{event: session_end, command: touch ended}]")
        .start();
    let stdout = running.stdout();
    let pid = running.line_of("pid");
    drop(stdout);
    // The next events have no reader any more.
    fs::write(running.work().join("go"), "").unwrap();
    let ran = running.finish();
    assert_eq!(ran.status, 130, "{}", ran.stderr);
    assert!(ran.path("work/ended").exists());
    eventually(|| (!is_alive(&pid)).then_some(()));
}

const CALL: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch made}}]
  - text: done
";

#[test]
fn a_client_prompts_is_asked_and_gets_what_came_of_it() {
    let mut client = Client::start(run().script(CALL));
    client.ask(1, "prompt", json!({"text": "go"}));
    let asked = client.until(|message| message["method"] == "approve");
    assert_eq!(asked["params"]["tool_name"], "shell");
    assert_eq!(asked["params"]["tool_input"], json!({"cmd": "touch made"}));
    assert_eq!(asked["params"]["suggestion"], "shell(cmd=touch made)");
    client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"decision": "allow"}}));
    let ended = client.event("tool_execution_end");
    assert_eq!(ended["is_error"], false);
    let answer = client.answer_to(1);
    let run = &answer["result"]["runs"][0];
    assert_eq!(
        (&run["end"], &run["response"]),
        (&json!("completed"), &json!("done"))
    );
    client.ask(2, "get_messages", json!({}));
    let messages = client.answer_to(2)["result"]["messages"].clone();
    assert_eq!(messages[0]["content"], "go");
    client.ask(3, "shutdown", json!({}));
    assert_eq!(client.answer_to(3)["result"], json!({}));
    let ran = client.end();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.path("work/made").exists());
}

#[test]
fn what_a_client_leaves_unanswered_does_not_run() {
    let mut client = Client::start(
        run()
            .script(CALL)
            .hooks("hooks: [{event: session_end, command: touch ended}]"),
    );
    client.ask(1, "prompt", json!({"text": "go"}));
    client.until(|message| message["method"] == "approve");
    let ran = client.end();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.path("work/made").exists());
    assert!(ran.path("work/ended").exists());
}

#[test]
fn a_malformed_approval_is_an_error_and_never_runs_the_call() {
    for (result, code) in [
        (r#"{"approve":"yes"}"#, -32602),
        (r#"{"approve":1}"#, -32602),
        (r#"{"approve":true,"approve":false}"#, -32600),
        (r#"{"decision":"deny","decision":"allow"}"#, -32600),
        (r#"{"decision":["allow"]}"#, -32602),
        (r#"{"decision":"allow","reason":7}"#, -32602),
    ] {
        let mut client = Client::start(run().script(CALL));
        client.ask(1, "prompt", json!({"text": "go"}));
        let asked = client.until(|message| message["method"] == "approve");
        let id = &asked["id"];
        client.write(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"
        ));
        let error = client.until(|message| message.get("error").is_some());
        assert_eq!(error["error"]["code"], code, "{result}: {error}");
        // Closing stdin leaves a question unanswered.
        let ran = client.end();
        assert!(!ran.path("work/made").exists(), "{result}");
    }
}

#[test]
fn an_agent_at_work_takes_what_is_said_to_it_and_refuses_what_is_not() {
    let mut client = Client::start(run().args(["--yes"]).script(
        "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: \"touch begun; until test -e go; do sleep 0.01; done\"}}]
  - text: one
  - text: two
",
    ));
    client.ask(1, "prompt", json!({"text": "go"}));
    client.event("tool_execution_start");
    client.ask(2, "prompt", json!({"text": "more"}));
    let refused = client.answer_to(2);
    assert_eq!(refused["error"]["code"], -32001);
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(words.contains("`steer`, `follow_up`, `abort`"), "{words}");
    client.ask(3, "steer", json!({"text": "left"}));
    assert_eq!(client.answer_to(3)["result"], json!({"waiting": 1}));
    client.ask(4, "follow_up", json!({"text": "then"}));
    assert_eq!(client.answer_to(4)["result"], json!({"waiting": 2}));
    client.ask(5, "get_state", json!({}));
    let state = client.answer_to(5)["result"].clone();
    assert_eq!(
        (&state["is_busy"], &state["waiting"]),
        (&json!(true), &json!(2))
    );
    fs::write(client.running.work().join("go"), "").unwrap();
    assert_eq!(client.answer_to(1)["result"]["runs"][0]["response"], "two");
    client.ask(6, "get_state", json!({}));
    let state = client.answer_to(6)["result"].clone();
    assert_eq!(
        (&state["is_busy"], &state["waiting"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_question_of_an_aborted_run_is_taken_back() {
    let mut client = Client::start(run().script(CALL));
    client.ask(1, "prompt", json!({"text": "go"}));
    let asked = client.until(|message| message["method"] == "approve");
    client.ask(2, "abort", json!({}));
    let taken_back = client.until(|message| message["method"] == "cancel");
    assert_eq!(taken_back["params"]["id"], asked["id"]);
    assert_eq!(client.answer_to(1)["result"]["runs"][0]["end"], "cancelled");
    // A late answer is ignored.
    client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"decision": "allow"}}));
    let ran = client.end();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.path("work/made").exists());
}

#[test]
fn so_many_messages_wait_for_an_agent_and_no_more() {
    let mut client = Client::start(run().script("turns: [{text: hi}]"));
    for id in 1..=64 {
        client.ask(id, "steer", json!({"text": "left"}));
        assert_eq!(client.answer_to(id)["result"]["waiting"], id);
    }
    client.ask(65, "steer", json!({"text": "left"}));
    let refused = client.answer_to(65)["error"].clone();
    assert_eq!(refused["code"], -32001);
    let words = "the queue `steering` is full: 64 messages are waiting; try again when the agent has taken some";
    assert_eq!(refused["message"], words);
    client.ask(66, "follow_up", json!({"text": "then"}));
    assert_eq!(client.answer_to(66)["result"], json!({"waiting": 65}));
    assert_eq!(client.end().status, 0);
}

#[test]
fn an_aborted_run_ends_and_the_session_goes_on() {
    let mut client = Client::start(run().args(["--yes"]).script(
        "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: sleep 300}}]\n  - text: back\n",
    ));
    client.ask(1, "prompt", json!({"text": "go"}));
    client.event("tool_execution_start");
    client.ask(2, "abort", json!({}));
    assert_eq!(client.answer_to(2)["result"], json!({}));
    assert_eq!(client.answer_to(1)["result"]["runs"][0]["end"], "cancelled");
    client.ask(3, "prompt", json!({"text": "again"}));
    assert_eq!(client.answer_to(3)["result"]["runs"][0]["response"], "back");
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_hook_that_takes_its_time_with_a_message_keeps_nobody_else_waiting() {
    let slow = "hooks: [{event: user_input, timeout: 300, command: touch begun; sleep 300}]";
    for is_told in [true, false] {
        let mut client = Client::start(run().hooks(slow).script("turns: [{text: hi}]"));
        client.ask(1, "steer", json!({"text": "left"}));
        let begun = client.running.work().join("begun");
        eventually(|| begun.exists().then_some(()));
        client.ask(2, "get_state", json!({}));
        assert_eq!(client.answer_to(2)["result"]["is_busy"], false);
        if is_told {
            client.ask(3, "shutdown", json!({}));
            assert_eq!(client.answer_to(1)["error"]["code"], -32003);
            assert_eq!(client.answer_to(3)["result"], json!({}));
        }
        assert_eq!(client.end().status, 0);
    }
}

#[test]
fn a_run_that_is_over_does_not_wait_for_what_is_said_meanwhile() {
    let hooks = "hooks: [{event: user_input, timeout: 300, command: \"read -r event; case \\\"$event\\\" in *left*) touch begun; sleep 300;; esac\"}]";
    let mut client = Client::start(
        run()
            .args(["--yes"])
            .hooks(hooks)
            .script("turns:\n  - tool_calls: [{name: shell, arguments: {cmd: sleep 300}}]\n"),
    );
    client.ask(1, "prompt", json!({"text": "go"}));
    client.event("tool_execution_start");
    client.ask(2, "steer", json!({"text": "left"}));
    let begun = client.running.work().join("begun");
    eventually(|| begun.exists().then_some(()));
    client.ask(3, "abort", json!({}));
    assert_eq!(client.answer_to(1)["result"]["runs"][0]["end"], "cancelled");
    client.ask(4, "get_state", json!({}));
    assert_eq!(client.answer_to(4)["result"]["is_busy"], false);
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_command_that_comes_to_nothing_is_an_error_and_says_why() {
    let test = run().script("turns: [{text: hi}]");
    let prompts = test.work().join(".tenterhook/prompts");
    fs::create_dir_all(&prompts).unwrap();
    fs::write(prompts.join("fix.md"), "Fix $1.").unwrap();
    let mut client = Client::start(test);
    for (id, (line, code, words)) in (1..).zip([
        ("/nothing", -32602, "Unknown command `/nothing`"),
        ("/fork", -32602, "Expected `/fork ENTRY`"),
        ("/tree 9", -32602, "`/tree` shows the entries"),
        (
            "/resume 9",
            -32602,
            "`tenterhook sessions list` shows the sessions",
        ),
        ("/model nine", -32000, "unknown model `nine`"),
        ("/thinking much", -32602, "unknown thinking level `much`"),
        ("/compact", -32000, "there is nothing to compact"),
    ]) {
        client.ask(id, "prompt", json!({"text": line}));
        let error = client.answer_to(id)["error"].clone();
        let message = error["message"].as_str().unwrap_or_default();
        assert!(
            error["code"] == code && message.contains(words),
            "{line}: {error}"
        );
    }
    client.ask(20, "prompt", json!({"text": "/tree"}));
    assert_eq!(client.answer_to(20)["result"], json!({"runs": []}));
    client.ask(21, "list_commands", json!({}));
    let commands = client.answer_to(21)["result"]["commands"].clone();
    let mut commands = commands.as_array().unwrap().iter();
    assert!(commands.any(|it| it["name"] == "fix" && it["source"] == "template"));
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_client_goes_from_session_to_session() {
    let mut client = Client::start(run().script("turns: [{text: one}, {text: two}]"));
    client.ask(1, "prompt", json!({"text": "first"}));
    client.answer_to(1);
    client.ask(2, "get_state", json!({}));
    let first = client.answer_to(2)["result"].clone();
    client.ask(3, "new_session", json!({}));
    let second = client.answer_to(3)["result"]["session_id"].clone();
    assert_ne!(second, first["session_id"]);
    client.ask(4, "resume", json!({"id": first["session_id"]}));
    assert_eq!(
        client.answer_to(4)["result"]["session_id"],
        first["session_id"]
    );
    client.ask(5, "fork", json!({"entry": first["leaf"]}));
    let third = client.answer_to(5)["result"].clone();
    assert!(third["session_id"] != first["session_id"] && third["words"].is_null());
    client.ask(6, "resume", json!({"id": "nothing"}));
    assert_eq!(client.answer_to(6)["error"]["code"], -32000);
    client.ask(7, "fork", json!({"entry": "nothing"}));
    assert_eq!(client.answer_to(7)["error"]["code"], -32602);
    client.ask(8, "list_commands", json!({}));
    let commands = client.answer_to(8)["result"]["commands"].clone();
    assert!(
        commands
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["name"] == "tree")
    );
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_client_chooses_models_and_names_the_session() {
    let mut client = Client::start(
        run()
            .script("turns: [{text: one}, {text: two}]")
            .file("other.yaml", "turns: [{text: three}]")
            .file("../config/models.yaml", "models: {fast: ollama/small}"),
    );
    client.ask(1, "list_models", json!({}));
    let listed = client.answer_to(1)["result"].clone();
    assert_eq!(
        listed,
        json!({"model": "scripted/script", "models": ["scripted:script.yaml", "fast"]})
    );
    for (id, (method, params, result)) in [
        (
            "set_model",
            json!({"name": "scripted:other.yaml"}),
            json!({"model": "scripted/other", "changed": true}),
        ),
        (
            "set_model",
            json!({"name": "scripted:other.yaml"}),
            json!({"model": "scripted/other", "changed": false}),
        ),
        (
            "next_model",
            json!({}),
            json!({"model": "scripted/script", "changed": true}),
        ),
        (
            "set_thinking_level",
            json!({"level": "high"}),
            json!({"thinking_level": "high", "changed": true}),
        ),
        (
            "set_session_name",
            json!({"name": "cleaning"}),
            json!({"session_name": "cleaning"}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id as u64 + 2;
        client.ask(id, method, &params);
        assert_eq!(client.answer_to(id)["result"], result, "{method} {params}");
    }
    client.ask(10, "get_state", json!({}));
    let state = client.answer_to(10)["result"].clone();
    assert_eq!(
        (
            &state["model"],
            &state["thinking_level"],
            &state["session_name"]
        ),
        (
            &json!("scripted/script"),
            &json!("high"),
            &json!("cleaning")
        )
    );
    client.ask(11, "set_session_name", json!({}));
    assert_eq!(
        client.answer_to(11)["result"],
        json!({"session_name": null})
    );
    for (id, method, params, code) in [
        (12, "set_model", json!({"name": "none:such"}), -32000),
        (13, "set_thinking_level", json!({"level": "much"}), -32602),
        (14, "set_model", json!({}), -32602),
    ] {
        client.ask(id, method, &params);
        let error = client.answer_to(id)["error"].clone();
        assert_eq!(error["code"], code, "{method} {params}: {error}");
    }
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_client_is_told_of_templates_and_skills_too() {
    let test = run().script("turns: [{text: hi}]");
    let config = test.home().join("../config");
    for (name, text) in [
        (
            "prompts/review.md",
            "---\ndescription: looks at it\nargument-hint: <file>\n---\nReview $1.",
        ),
        ("prompts/tree.md", "Never used."),
        (
            "skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: reads them\n---\nRead.",
        ),
    ] {
        let path = config.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut client = Client::start(test);
    client.ask(1, "list_commands", json!({}));
    let commands = client.answer_to(1)["result"]["commands"].clone();
    let mut commands = commands.as_array().unwrap().clone();
    commands.retain(|it| it["source"] != "tenterhook");
    assert_eq!(
        json!(commands),
        json!([
            {"name": "review", "forms": ["<file>"], "description": "looks at it", "source": "template", "from": "user"},
            {"name": "skill:pdf", "forms": [""], "description": "reads them", "source": "skill", "from": "user"},
        ])
    );
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_mistake_is_answered_and_the_next_message_is_taken() {
    let mut client = Client::start(run().script("turns: [{text: hi}]"));
    for (line, code) in [
        ("{".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"promt"}"#.to_owned(),
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"prompt"}"#.to_owned(),
            -32602,
        ),
        (format!("\"{}\"", "x".repeat(9 << 20)), -32700),
    ] {
        client.write(&line);
        client.write("\n");
        let answer = client.until(|message| message.get("error").is_some());
        assert_eq!(answer["error"]["code"], code);
    }
    client.ask(2, "prompt", json!({"text": "hi"}));
    assert_eq!(client.answer_to(2)["result"]["runs"][0]["response"], "hi");
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_script_asks_the_client_what_it_wants_to_know() {
    let extension = "\
export default function (pi) {
  pi.on('tool_call', async (event, ctx) => {
    const yes = await ctx.ui.confirm('Sure?', 'It makes a file.');
    return yes ? undefined : { block: true, reason: 'the user said no' };
  });
}
";
    let mut client = Client::start(
        run()
            .args(["--yes", "-e", "ask.mjs"])
            .script(CALL)
            .file("ask.mjs", extension),
    );
    client.ask(1, "prompt", json!({"text": "go"}));
    let asked = client.until(|message| message["method"] == "question");
    assert_eq!(
        asked["params"],
        json!({"kind": "confirm", "title": "Sure?", "message": "It makes a file."})
    );
    client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"answer": false}}));
    client.answer_to(1);
    let ran = client.end();
    assert!(!ran.path("work/made").exists());
}
