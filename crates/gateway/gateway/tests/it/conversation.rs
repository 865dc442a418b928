//! Turns: their frames, events, failures and cancellation.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::ApprovalChoice;
use tenterhook_channel::settings::{BusyMode, RestartMode, Settings};
use tenterhook_channel::store::{InboxRecord, InboxState};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{
    MessageDeliver, MessagePart, MessageSend, SenderRole, UserPromptSubmit,
};
use tenterhook_gateway::conversations::approvals::Answerer;

use crate::conversation_stage::{Options, Stage, chat, sender, texts};

fn text_part(text: &str) -> MessagePart {
    MessagePart {
        kind: "text".to_owned(),
        text: Some(text.to_owned()),
        ..MessagePart::default()
    }
}

// G9 and G22
#[tokio::test]
async fn a_turn_is_a_start_then_chunks_then_an_end_then_done() {
    let stage = Stage::new("turns: [{text: hello dear Ann}]");
    stage.ask("hi *there*").await;
    let expected = [
        "event message_receive",
        "said hi *there*",
        "start m1",
        "model",
        "event message_deliver answer",
        "end final Stop: hello dear Ann",
        "event message_send",
        "done Completed",
    ];
    assert_eq!(stage.lines(), expected);
    assert_eq!(stage.streamed(), "hello dear Ann");
    assert_eq!(stage.heard(0), ["hi *there*"]);
    stage.until_finished().await;
}

// G23
#[tokio::test]
async fn only_the_last_message_of_a_turn_with_tools_is_final() {
    let script = r"
turns:
  - text: I look.
    tool_calls: [{name: shell, arguments: {cmd: echo found}}]
  - text: Done.
";
    let stage = Stage::new(script);
    stage.ask("look").await;
    let lines = stage.lines();
    let expected = [
        "start m1",
        "model",
        "event message_deliver intermediate",
        "end more Tools: I look.",
        "tool_start shell",
        "tool_end shell: found",
        "model",
        "event message_deliver answer",
        "call shell {\"cmd\":\"echo found\"} - found",
        "end final Stop: Done.",
        "event message_send",
        "done Completed",
    ];
    let lines: Vec<&String> = lines
        .iter()
        .filter(|line| !line.starts_with("tool_update"))
        .collect();
    assert_eq!(lines[2..], expected);
}

// G24 and O32
#[tokio::test]
async fn a_failed_model_call_is_reported_before_message_send_and_done() {
    let stage = Stage::new("turns: [{error: no such model}]");
    stage.ask("hi").await;
    let lines = stage.lines();
    let expected = [
        "event message_deliver error",
        "error model_error: The model call failed. no such model",
        "event gateway_error",
        "event message_send",
        "done Failed",
    ];
    assert_eq!(lines[lines.len() - 5..], expected);
    stage.until_finished().await;
}

#[tokio::test]
async fn others_than_owners_do_not_see_why_a_model_call_failed() {
    let stage = Stage::new("turns: [{error: no route to 10.0.0.7}]");
    stage.say_as("bob", SenderRole::Member, "hi").await;
    stage.log.until("done", 1).await;
    let shown = "error model_error: The model call failed.".to_owned();
    assert!(stage.lines().contains(&shown), "{:#?}", stage.lines());
}

// G25
#[tokio::test]
async fn retries_are_shown_and_so_is_the_recovery() {
    let stage = Stage::new("turns: [{error: busy, retryable: true}, {text: now}]");
    stage.ask("hi").await;
    let lines = stage.lines();
    let place = lines
        .iter()
        .position(|line| line.starts_with("retry"))
        .unwrap();
    assert!(lines[place].ends_with("false"), "{lines:#?}");
    let recovered = lines
        .iter()
        .any(|line| line.starts_with("retry") && line.ends_with("true"));
    assert!(recovered, "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "done Completed");
}

// G26 and G27
#[tokio::test]
async fn parts_of_hooks_follow_the_last_end_in_the_order_of_the_hooks() {
    let stage = Stage::new("turns: [{text: hello}]");
    stage
        .engine
        .on(|_: &MessageSend| Effect::<MessageSend>::none().part(text_part("of a")));
    stage
        .engine
        .on(|_: &MessageSend| Err::<Effect<MessageSend>, _>("broken"));
    stage
        .engine
        .on(|_: &MessageSend| Effect::<MessageSend>::none().part(text_part("of b")));
    stage.ask("hi").await;
    let lines = stage.lines();
    let place = lines
        .iter()
        .position(|line| line.starts_with("end final"))
        .unwrap();
    let rest: Vec<&String> = lines[place..]
        .iter()
        .filter(|line| !line.starts_with("hook"))
        .collect();
    let expected = [
        "end final Stop: hello",
        "event message_send",
        "event message_deliver extra",
        "event message_deliver extra",
        "message of a",
        "message of b",
        "done Completed",
    ];
    assert_eq!(rest, expected);
}

// G28
#[tokio::test]
async fn text_that_a_hook_withholds_never_leaves() {
    let script = r"
turns:
  - text: the password is swordfish
    reasoning: it is swordfish
    tool_calls: [{name: shell, arguments: {cmd: 'true'}}]
  - text: again swordfish
";
    let stage = Stage::new(script);
    stage.engine.on(|event: &MessageDeliver| {
        if event.text.contains("swordfish") {
            return Effect::<MessageDeliver>::block("a secret");
        }
        Effect::none()
    });
    stage.ask("hi").await;
    let lines = stage.log.lines();
    assert!(
        !lines.iter().any(|line| line.contains("swordfish")),
        "{lines:#?}"
    );
    let withheld = lines
        .iter()
        .filter(|line| line.contains("The answer was withheld."));
    assert_eq!(withheld.count(), 2, "{lines:#?}");
}

#[tokio::test]
async fn a_hook_can_add_a_file_to_an_answer() {
    let stage = Stage::new("turns: [{text: hello}]");
    let path = stage.cwd().join("chart.txt");
    std::fs::write(&path, "chart").unwrap();
    stage.engine.on(move |event: &MessageDeliver| {
        let mut parts = event.parts.clone();
        parts.push(MessagePart {
            kind: "file".to_owned(),
            data: Some(path.display().to_string()),
            ..MessagePart::default()
        });
        Effect::<MessageDeliver>::none().replace_parts(parts)
    });
    stage.ask("hi").await;
    let lines = stage.log.lines();
    let place = lines
        .iter()
        .position(|line| line == "end final Stop: hello")
        .unwrap();
    assert_eq!(lines[place + 1], "message  [chart.txt]");
}

#[tokio::test]
async fn a_failing_guard_of_message_deliver_withholds_the_answer() {
    let stage = Stage::new("turns: [{text: hello}]");
    stage
        .engine
        .on(|_: &MessageDeliver| Err::<Effect<MessageDeliver>, _>("broken"));
    stage.ask("hi").await;
    let lines = stage.log.lines();
    assert!(lines.contains(&"end final Stop: The answer was withheld.".to_owned()));
    assert!(
        !lines.iter().any(|line| line.contains("hello")),
        "{lines:#?}"
    );
}

// G29
#[tokio::test]
async fn message_send_gets_the_text_that_was_delivered() {
    let stage = Stage::new("turns: [{text: hello}]");
    stage.engine.on(|event: &MessageDeliver| {
        Effect::<MessageDeliver>::none().replace_text(event.text.to_uppercase())
    });
    let seen: Arc<Mutex<Vec<MessageSend>>> = Arc::default();
    let log = Arc::clone(&seen);
    stage
        .engine
        .on(move |event: &MessageSend| log.lock().push(event.clone()));
    stage.ask("hi").await;
    assert!(stage.lines().contains(&"end final Stop: HELLO".to_owned()));
    let sent = seen.lock().pop().unwrap();
    assert_eq!(
        (sent.input_text.as_str(), sent.response_text.as_str()),
        ("hi", "HELLO")
    );
    assert_eq!(sent.message_ids, ["m1"]);
    assert_eq!(
        (sent.user_id.as_str(), sent.is_voice, sent.is_error),
        ("ann", false, false)
    );
    assert_eq!(sent.audio_formats, ["audio/wav"]);
}

// G30 and G84
#[tokio::test]
async fn the_send_tool_delivers_texts_and_files_and_refuses_what_must_stay() {
    let script = r"
turns:
  - tool_calls:
      - {name: send, arguments: {text: half done, file: report.txt}}
      - {name: send, arguments: {file: ../outside.txt}}
      - {name: send, arguments: {file: link.txt}}
      - {name: send, arguments: {file: key.pem}}
      - {name: send, arguments: {}}
  - text: Done.
";
    let stage = Stage::new(script);
    let (cwd, outside) = (stage.cwd(), stage.elsewhere().join("outside.txt"));
    std::fs::write(cwd.join("report.txt"), "all is well").unwrap();
    std::fs::write(&outside, "private").unwrap();
    std::os::unix::fs::symlink(&outside, cwd.join("link.txt")).unwrap();
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0Zc9VnUeQ1X2pR7sT8uV9wX0yZ1aB2cD3eF4gH5iJ6kL7mN8\noP9qR0sT1uV2wX3yZ4aB5cD6eF7gH8iJ9kL0mN1oP2qR3sT4uV5wX6yZ7aB8cD9e\n-----END RSA PRIVATE KEY-----\n";
    std::fs::write(cwd.join("key.pem"), key).unwrap();
    stage.ask("go").await;
    let lines = stage.lines();
    let ends: Vec<&String> = lines
        .iter()
        .filter(|line| line.starts_with("tool_"))
        .collect();
    let ended: Vec<&&String> = ends
        .iter()
        .filter(|line| !line.starts_with("tool_start"))
        .collect();
    assert_eq!(ended[0], &"tool_end send: Sent.", "{lines:#?}");
    assert!(
        lines.contains(&"message half done [report.txt]".to_owned()),
        "{lines:#?}"
    );
    assert!(lines.contains(&"event message_deliver extra".to_owned()));
    let refused = ended
        .iter()
        .filter(|line| line.contains("cannot send"))
        .count();
    assert_eq!(refused, 3, "{lines:#?}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("it contains a secret")),
        "{lines:#?}"
    );
    let messages = lines
        .iter()
        .filter(|line| line.starts_with("message "))
        .count();
    assert_eq!(messages, 1);
    // A refused file leaves no copy that the agent or a hook could still send.
    let media = stage.elsewhere().join("state/media");
    let copies = std::fs::read_dir(media).unwrap().flatten();
    let contents = copies.map(|copy| std::fs::read_to_string(copy.path()).unwrap());
    let contents: Vec<String> = contents.collect();
    assert!(contents.iter().any(|text| text == "all is well"));
    assert!(!contents.iter().any(|text| text.contains("PRIVATE KEY")));
}

// G31
#[tokio::test]
async fn a_cancelled_turn_ends_its_tools_and_sends_no_message_send() {
    let script = r"
turns:
  - text: I wait.
    tool_calls: [{name: shell, arguments: {cmd: 'echo $$ > pid; sleep 1000'}}]
";
    let stage = Stage::new(script);
    stage.say("wait").await;
    let pid = stage.cwd().join("pid");
    let reading = async {
        loop {
            match std::fs::read_to_string(&pid) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let pid = tokio::time::timeout(Duration::from_secs(20), reading)
        .await
        .unwrap();
    assert!(stage.cancel().await);
    stage.log.until("done", 1).await;
    let lines = stage.lines();
    let place = lines
        .iter()
        .position(|line| line.starts_with("end final"))
        .unwrap();
    let expected = [
        "end final Cancelled: ",
        "event message_cancel",
        "done Cancelled",
    ];
    assert_eq!(lines[place..], expected);
    assert!(!lines.contains(&"event message_send".to_owned()));
    assert!(!std::path::Path::new("/proc").join(pid).exists());
    stage.until_finished().await;
}

// G32
#[tokio::test]
async fn cancelling_when_nothing_runs_does_nothing() {
    let stage = Stage::new("turns: [{text: hello}]");
    assert!(!stage.cancel().await);
    assert_eq!(stage.lines(), Vec::<String>::new());
}

// G5 and O33
#[tokio::test]
async fn stopping_cancels_a_turn_whose_model_does_not_answer() {
    let stage = Stage::with(
        "turns: [{text: hello}]",
        Options {
            calls: 0,
            ..Options::default()
        },
    );
    stage.say("hi").await;
    stage.until_called(1).await;
    stage.stop(Duration::ZERO).await;
    let lines = stage.lines();
    assert_eq!(lines.last().unwrap(), "done Cancelled");
    assert!(lines.contains(&"event message_cancel".to_owned()));
    stage.until_finished().await;
}

#[tokio::test]
async fn stopping_waits_for_a_turn_that_ends_in_time() {
    let stage = Stage::with(
        "turns: [{text: hello}]",
        Options {
            settings: Settings {
                busy: BusyMode::FollowUp,
                ..Settings::default()
            },
            calls: 0,
            ..Options::default()
        },
    );
    stage.say("hi").await;
    stage.until_called(1).await;
    stage.say("later").await;
    stage.log.until("queued", 1).await;
    let gate = Arc::clone(&stage.gate);
    let answering = tokio::spawn(async move { gate.add_permits(2) });
    stage.stop(Duration::from_secs(20)).await;
    answering.await.unwrap();
    assert_eq!(
        stage
            .lines()
            .iter()
            .filter(|line| line.starts_with("done"))
            .count(),
        1
    );
    assert_eq!(stage.lines().last().unwrap(), "done Completed");
}

#[tokio::test]
async fn a_turn_that_takes_too_long_fails() {
    let mut settings = Settings::default();
    settings.turns.timeout = Duration::from_secs(1);
    let stage = Stage::with(
        "turns: [{text: hello}]",
        Options {
            settings,
            calls: 0,
            ..Options::default()
        },
    );
    stage.ask("hi").await;
    let told = "error timeout: The answer took longer than 1 s, so it was stopped.".to_owned();
    assert!(stage.lines().contains(&told), "{:#?}", stage.lines());
    assert_eq!(stage.lines().last().unwrap(), "done Failed");
}

#[tokio::test]
async fn a_blocked_prompt_is_a_failed_turn_with_the_reason() {
    let stage = Stage::new("turns: [{text: hello}]");
    stage
        .engine
        .on(|_: &UserPromptSubmit| Effect::<UserPromptSubmit>::block("not today"));
    stage.ask("hi").await;
    assert!(
        stage
            .lines()
            .contains(&"error blocked: not today".to_owned())
    );
    assert_eq!(stage.lines().last().unwrap(), "done Failed");
}

// G77
#[tokio::test]
async fn only_an_owner_approves_and_only_once() {
    let script = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo allowed}}]
  - text: Done.
";
    let stage = Stage::with(
        script,
        Options {
            asks: true,
            ..Options::default()
        },
    );
    stage.say("go").await;
    stage.log.until("approve", 1).await;
    let frames = stage.publisher.frames.lock().clone();
    let nonce = frames.into_iter().find_map(|(_, frame)| {
        if let Frame::Approve { nonce, choices, .. } = frame {
            assert_eq!(choices.len(), 3);
            return Some(nonce);
        }
        None
    });
    let (nonce, ann, bob) = (nonce.unwrap(), sender("ann"), sender("bob"));
    let (here, elsewhere) = (chat("ann"), chat("bob"));
    let answer = |nonce: &str, chat, sender, role| {
        let by = Answerer { chat, sender, role };
        stage
            .parts
            .approvals
            .answer(nonce, ApprovalChoice::Allow, None, by)
    };
    assert!(answer(&nonce, &here, &bob, SenderRole::Member).is_some());
    assert!(answer(&nonce, &elsewhere, &ann, SenderRole::Owner).is_some());
    assert!(answer("another", &here, &ann, SenderRole::Owner).is_some());
    assert_eq!(answer(&nonce, &here, &ann, SenderRole::Owner), None);
    assert!(answer(&nonce, &here, &ann, SenderRole::Owner).is_some());
    stage.log.until("done", 1).await;
    let lines = stage.lines();
    assert!(lines.contains(&"resolved allowed".to_owned()), "{lines:#?}");
    assert!(
        lines.contains(&"tool_end shell: allowed".to_owned()),
        "{lines:#?}"
    );
}

// G78
#[tokio::test]
async fn a_call_is_denied_if_no_one_can_be_asked() {
    let script = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch made}}]
  - text: Done.
";
    let stage = Stage::with(
        script,
        Options {
            asks: true,
            ..Options::default()
        },
    );
    stage.say_as("bob", SenderRole::Member, "go").await;
    stage.log.until("done", 1).await;
    let told = stage.requests.lock()[1]
        .messages
        .iter()
        .last()
        .unwrap()
        .content
        .clone();
    assert!(told.contains("no one is there to give it"), "{told}");
    let denied = "tool_denied shell permission: The call was denied.".to_owned();
    let lines = stage.lines();
    assert!(lines.contains(&denied), "{lines:#?}");
    // The result for the model has the reason, and would be shown as a failure.
    let ends = lines.iter().filter(|line| line.starts_with("tool_end"));
    assert_eq!(ends.count(), 0, "{lines:#?}");
    assert!(!stage.cwd().join("made").exists());
}

#[tokio::test]
async fn guests_get_an_agent_that_only_reads() {
    let stage = Stage::new("turns: [{text: one}, {text: two}]");
    stage.say("hi").await;
    stage.log.until("done", 1).await;
    stage.say_as("eve", SenderRole::Guest, "hi").await;
    stage.log.until("done", 2).await;
    let untrusted: Vec<bool> = stage
        .opened
        .lock()
        .iter()
        .map(|access| access.is_untrusted)
        .collect();
    assert_eq!(untrusted, [false, true]);
    assert_eq!(stage.heard(1), ["hi", "hi"]);
    let requests = stage.requests.lock();
    let has_shell = |call: usize| requests[call].tools.iter().any(|tool| tool.name == "shell");
    assert_eq!((has_shell(0), has_shell(1)), (true, false));
}

#[tokio::test]
async fn a_session_goes_on_after_a_restart_until_new_is_said() {
    let stage = Stage::new("turns: [{text: one}, {text: two}, {text: three}]");
    stage.ask("first").await;
    stage.stop(Duration::ZERO).await;
    stage.restart();
    stage.say("second").await;
    stage.log.until("done", 2).await;
    assert_eq!(stage.heard(1), ["first", "second"]);
    stage.say("/new").await;
    stage
        .log
        .until("message A new conversation begins.", 1)
        .await;
    stage.say("third").await;
    stage.log.until("done", 3).await;
    assert_eq!(stage.heard(2), ["third"]);
    stage.until_finished().await;
}

/// Returns a stage with this mode, and a message whose turn ran when the program was killed.
async fn interrupted(mode: RestartMode, script: &str) -> (Stage, InboxRecord) {
    let settings = Settings {
        on_restart: mode,
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    let stage = Stage::with(script, options);
    let record = stage.record(|message| message.parts = texts(&["do it"]));
    let record = record.await;
    (stage, record)
}

fn running(record: InboxRecord) -> InboxRecord {
    InboxRecord {
        state: InboxState::Running,
        ..record
    }
}

#[tokio::test]
async fn an_interrupted_turn_is_told_and_never_run_again() {
    for mode in [RestartMode::Tell, RestartMode::Quiet] {
        let (stage, record) = interrupted(mode, "turns: [{text: going on}]").await;
        let resumed = stage.conversation();
        resumed.resume_interrupted(running(record)).await;
        stage.until_finished().await;
        assert_eq!(stage.requests.lock().len(), 0);
        let lines = stage.lines();
        if mode == RestartMode::Tell {
            assert!(lines[2].starts_with("error interrupted"), "{lines:#?}");
            assert_eq!(lines[3], "done Failed");
        } else {
            assert_eq!(lines.len(), 0, "{lines:#?}");
        }
    }
}

#[tokio::test]
async fn an_interrupted_turn_is_continued_if_the_agent_has_read_its_message() {
    let script = "turns: [{error: away}, {text: going on}]";
    let (stage, record) = interrupted(RestartMode::Resume, script).await;
    stage.conversation().offer(record.clone()).unwrap();
    stage.log.until("done Failed", 1).await;
    stage.stop(Duration::ZERO).await;
    stage.restart();
    let resumed = stage.conversation();
    resumed.resume_interrupted(running(record)).await;
    stage.log.until("done Completed", 1).await;
    let heard = stage.heard(1);
    assert_eq!(heard[0], "do it");
    assert!(heard[1].contains("Its tools may have run"), "{heard:#?}");
    assert_eq!(heard.len(), 2);
    stage.until_finished().await;
}

// The program was killed while hooks saw the message, before it was in the session.
#[tokio::test]
async fn an_agent_is_not_asked_to_continue_a_message_that_it_has_never_read() {
    let script = "turns: [{text: something else}]";
    let (stage, record) = interrupted(RestartMode::Resume, script).await;
    let resumed = stage.conversation();
    resumed.resume_interrupted(running(record)).await;
    stage.log.until("done Failed", 1).await;
    stage.until_finished().await;
    assert_eq!(stage.requests.lock().len(), 0, "the model was asked");
    let lines = stage.lines();
    let told = "error interrupted: I was interrupted before I could finish. Tools may have run. \
                Write again if I should continue.";
    assert!(lines.iter().any(|line| line == told), "{lines:#?}");
}
