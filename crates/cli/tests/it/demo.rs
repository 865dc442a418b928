//! `tenterhook demo`.

use std::fs;

use serde_json::{Value, json};

use crate::stage::Test;

#[test]
fn a_newcomer_sees_a_call_run_two_denied_and_one_rewritten() {
    let ran = Test::new().args(["demo"]).run();
    let session = "\
I start with a greeting.
● shell echo hello
    pre_tool_use    guard           no opinion [TIME]
    pre_tool_use    readable-ls     no opinion [TIME]
    post_tool_use   audit           no opinion [TIME]
    hello
Now I clean up.
● shell rm -rf precious
    pre_tool_use    guard           deny [TIME]  `rm -rf` is not allowed here
        hooks.yaml:11  *'\"cmd\":\"rm -rf'*) echo '{\"decision\":\"deny\",\"reason\":\"`rm -rf` is not allowed here\"}' ;;
    pre_tool_use    readable-ls     not run               `guard` ended the dispatch
  denied by hook `guard` (pre_tool_use): `rm -rf` is not allowed here
    post_tool_use   audit           no opinion [TIME]
Perhaps as root?
● shell sudo rm -r precious
    pre_tool_use    guard           deny [TIME]  root is not allowed in this session
        hooks.yaml:12  *'\"cmd\":\"sudo '*) echo '{\"decision\":\"deny\",\"reason\":\"root is not allowed in this session\"}' ;;
    pre_tool_use    readable-ls     not run               `guard` ended the dispatch
  denied by hook `guard` (pre_tool_use): root is not allowed in this session
    post_tool_use   audit           no opinion [TIME]
Then let me see what is here.
● shell ls
    pre_tool_use    guard           no opinion [TIME]
    pre_tool_use    readable-ls     rewrite [TIME]
        hooks.yaml:22  *'\"cmd\":\"ls\"'*) echo '{\"updated_input\":{\"cmd\":\"ls -h\"}}' ;;
  rewritten by a hook: shell ls -h
    post_tool_use   audit           no opinion [TIME]
    audit.jsonl
    precious
Two of my commands were denied, and the folder is still there.

10 hook runs: 2 calls denied, 1 call rewritten, 4 calls audited.
The folder `precious` is still there.

Try next:
  tenterhook init            write a guard for this folder, with its tests
  tenterhook install         guard the coding agents on this machine
  tenterhook demo --scripts  the same hooks in Python and TypeScript
";
    assert!(ran.stdout.contains(session), "{}", ran.stdout);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn the_demo_leaves_nothing_behind() {
    let ran = Test::new().args(["demo"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for folder in ["work", "home", "state", "tmp"] {
        let left: Vec<_> = fs::read_dir(ran.path(folder)).unwrap().collect();
        assert!(left.is_empty(), "{folder}: {left:?}");
    }
}

#[test]
fn the_demo_in_json_is_one_object_with_every_run() {
    let ran = Test::new().args(["demo", "--json"]).run();
    let report = ran.json();
    let runs = report["runs"].as_array().unwrap();
    let effects: Vec<Value> = runs
        .iter()
        .map(|run| json!([run["hook"], run["status"], run["effect"]]))
        .collect();
    let call = |guard: &str, ls: [&str; 2]| {
        [
            json!(["guard", "completed", guard]),
            json!(["readable-ls", ls[0], ls[1]]),
            json!(["audit", "completed", "none"]),
        ]
    };
    let expected = [
        call("none", ["completed", "none"]),
        call("deny", ["skipped", "none"]),
        call("deny", ["skipped", "none"]),
        call("none", ["completed", "rewrite"]),
    ];
    assert_eq!(effects, expected.concat());
    assert_eq!(report["precious_survived"], true);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn scripts_guard_the_same_session() {
    let ran = Test::new().args(["demo", "--scripts", "--json"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(json["precious_survived"], true);
    let runs = json["runs"].as_array().unwrap();
    let of = |hook: &str, effect: &str| {
        let runs = runs
            .iter()
            .filter(|run| run["hook"] == hook && run["effect"] == effect);
        runs.count()
    };
    assert_eq!(of("guard.py:guard", "deny"), 2);
    assert_eq!(of("readable-ls.ts:readableLs", "rewrite"), 1);
    assert_eq!(runs.iter().filter(|run| run["hook"] == "audit").count(), 4);
}

#[test]
fn the_demo_of_the_gateway_shows_messages_that_hooks_replace_reject_and_redact() {
    let ran = Test::new().args(["demo", "--gateway"]).run();
    let conversation = "\
A hook replaces the message, and another one hides an address in the answer.
→ POST /v1/chats/demo/messages {\"text\":\"status?\"}
  message_receive  shortcut        rewrite [TIME]
  message_receive  no-passwords    no opinion [TIME]
  message_deliver  no-addresses    rewrite [TIME]
← 200 Ada works on the release. Write to (address hidden).

A hook rejects the message. The model never sees it.
→ POST /v1/chats/demo/messages {\"text\":\"The password is swordfish.\"}
  message_receive  shortcut        no opinion [TIME]
  message_receive  no-passwords    deny [TIME]  Do not send passwords in a chat.
  message_deliver  no-addresses    no opinion [TIME]
← 403 Do not send passwords in a chat.

No hook objects, so the answer is delivered as it is.
→ POST /v1/chats/demo/messages {\"text\":\"When does it ship?\"}
  message_receive  shortcut        no opinion [TIME]
  message_receive  no-passwords    no opinion [TIME]
  message_deliver  no-addresses    no opinion [TIME]
← 200 It ships on Friday.

This is what the chat contains now.
→ GET /v1/chats/demo/history
  said   Who works on the release?
  end    Ada works on the release. Write to (address hidden).
  error  Do not send passwords in a chat.
  said   When does it ship?
  end    It ships on Friday.
";
    assert!(ran.stdout.contains(conversation), "{}", ran.stdout);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    for folder in ["work", "home", "state", "tmp"] {
        let left: Vec<_> = fs::read_dir(ran.path(folder)).unwrap().collect();
        assert!(left.is_empty(), "{folder}: {left:?}");
    }
}

#[test]
fn the_demo_of_the_gateway_in_json_has_every_exchange() {
    let ran = Test::new().args(["demo", "--gateway", "--json"]).run();
    let report = ran.json();
    let exchanges = report["exchanges"].as_array().unwrap();
    let statuses: Vec<_> = exchanges
        .iter()
        .map(|exchange| &exchange["status"])
        .collect();
    assert_eq!(statuses, [200, 403, 200]);
    assert_eq!(exchanges[1]["body"]["error"]["code"], "rejected");
    assert_eq!(
        report["history"]["frames"][0]["text"],
        "Who works on the release?"
    );
}
