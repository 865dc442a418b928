//! Attacks from inside a chat, and what must hold all the same.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tenterhook_channel::chat::SessionKey;
use tenterhook_channel::frame::{Chunk, Frame};
use tenterhook_channel::message::{ApprovalChoice, IncomingPart, MediaKind, MediaRef};
use tenterhook_channel::settings::{BusyMode, Settings};
use tenterhook_channel::store::InboxState;
use tenterhook_engine::Effect;
use tenterhook_engine::event::{AgentEnd, MessageDeliver, SenderRole, TurnStart, UserPromptSubmit};
use tenterhook_gateway::conversations::approvals::Answerer;
use tenterhook_gateway::conversations::conversation::ChatTask;
use tenterhook_providers::Purpose;

use crate::conversation_stage::{Options, Stage, chat, sender, texts};

const SAY: &str = "turns: [{text: first}, {text: second, repeat: true}]";

const LOOK_THEN_SAY: &str = r"
turns:
  - tool_calls: [{name: list_directory}]
  - {text: second, repeat: true}
";

/// A stage whose model answers when the test says so.
fn slow(script: &str, busy: BusyMode) -> Stage {
    let settings = Settings {
        busy,
        ..Settings::default()
    };
    let options = Options {
        settings,
        calls: 0,
        ..Options::default()
    };
    Stage::with(script, options)
}

#[tokio::test]
async fn a_message_that_makes_the_program_panic_does_not_close_the_chat() {
    let stage = Stage::new(SAY);
    let bug = IncomingPart::Media(MediaRef {
        kind: MediaKind::File,
        reference: "bug".to_owned(),
        name: None,
        duration_ms: None,
    });
    let record = stage.record(|message| message.parts = vec![bug]).await;
    stage.conversation().offer(record).unwrap();
    stage.log.until("error crashed", 1).await;
    stage.ask("hello").await;
    stage.until_finished().await;
}

#[tokio::test]
async fn a_turn_that_panics_is_reported_and_the_next_message_is_answered() {
    let stage = Stage::new(SAY);
    stage.publisher.has_bug.store(true, Ordering::Release);
    stage.ask("one").await;
    stage.say("two").await;
    stage.log.until("done Completed", 1).await;
    stage.until_finished().await;
    let mut ends = stage.lines();
    ends.retain(|line| line.starts_with("error") || line.starts_with("done"));
    assert_eq!(ends[1..], ["done Failed", "done Completed"]);
    assert!(ends[0].starts_with("error crashed"), "{}", ends[0]);
}

#[tokio::test]
async fn long_turns_of_one_person_hold_up_no_one_else() {
    let stage = slow(SAY, BusyMode::FollowUp);
    // Eight turns can run at once. Bob begins one in each of ten chats, and none of them ends.
    let of_bob: Vec<ChatTask> = futures_util::future::join_all((0..10).map(async |number| {
        let key = SessionKey(format!("bob-{number}"));
        let task = ChatTask::start(Arc::clone(&stage.parts), key);
        let record = stage.record(|message| {
            message.sender = sender("bob");
            message.parts = texts(&["hello"]);
            message.chat = chat(&format!("bob-{number}"));
        });
        task.offer(record.await).unwrap();
        task
    }))
    .await;
    stage.until_called(6).await;
    stage.say("hello").await;
    stage.until_called(7).await;
    assert_eq!(stage.parts.turns.taken(), 7);
    stage.answer_calls(20);
    stage.log.until("done Completed", 1).await;
    stage.log.until("bob-9: done Completed", 1).await;
    for task in of_bob {
        task.stop(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn a_stop_command_does_not_remove_what_was_written_after_it() {
    let stage = slow(SAY, BusyMode::FollowUp);
    stage.say("one").await;
    stage.until_called(1).await;
    let stop = stage.record(|message| message.parts = texts(&["/stop"]));
    let stop = stop.await;
    let later = stage.record(|message| message.parts = texts(&["later"]));
    let later = later.await;
    stage.conversation().offer(stop).unwrap();
    stage.conversation().offer(later).unwrap();
    stage.log.until("done Cancelled", 1).await;
    stage.answer_calls(10);
    stage.log.until("done Completed", 1).await;
    stage.until_finished().await;
    assert!(stage.lines().contains(&"said later".to_owned()));
}

#[tokio::test]
async fn a_second_stop_cancels_the_turn_that_the_first_one_lets_go_on() {
    let stage = slow(SAY, BusyMode::FollowUp);
    stage.say("one").await;
    stage.until_called(1).await;
    let conversation = stage.conversation();
    let patient = conversation.stop(Duration::from_hours(1));
    let gave_up = tokio::time::timeout(Duration::from_millis(50), patient).await;
    assert!(gave_up.is_err());
    drop(conversation);
    stage.stop(Duration::ZERO).await;
    assert!(stage.lines().contains(&"done Cancelled".to_owned()));
}

#[tokio::test]
async fn a_steered_message_that_was_not_heard_is_said_once_across_a_stop() {
    let stage = slow(SAY, BusyMode::Steer);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("queued Steer", 1).await;
    // The message is in the queue once its hooks have run, which the next message waits for.
    stage.say("/status").await;
    stage.log.until("message state", 1).await;
    stage.stop(Duration::ZERO).await;
    let mut left = stage.parts.store.unfinished().await.unwrap();
    let record = left.pop().unwrap();
    assert_eq!((left.len(), &record.state), (0, &InboxState::Unheard));
    stage.restart();
    stage.answer_calls(10);
    stage.conversation().offer(record).unwrap();
    stage.log.until("done Completed", 1).await;
    stage.until_finished().await;
    let lines = stage.lines();
    let said = lines.iter().filter(|line| *line == "said two").count();
    assert_eq!(said, 1, "{lines:#?}");
}

#[tokio::test]
async fn what_busy_has_chosen_outlives_the_conversation() {
    let stage = slow(SAY, BusyMode::Steer);
    stage.say("/busy refuse").await;
    stage.log.until("message Changed", 1).await;
    stage.stop(Duration::ZERO).await;
    stage.restart();
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("error busy", 1).await;
}

#[tokio::test]
async fn why_a_gate_failed_is_told_in_direct_chats_of_owners_only() {
    for (role, is_direct, is_told) in [
        (SenderRole::Owner, true, true),
        (SenderRole::Owner, false, false),
        (SenderRole::Member, true, false),
        (SenderRole::Guest, true, false),
    ] {
        let stage = Stage::new(SAY);
        stage.engine.on(|_: &UserPromptSubmit| {
            Err::<Effect<UserPromptSubmit>, _>("cannot read /private/path")
        });
        let record = stage.record_as(role, |message| {
            message.parts = texts(&["hi"]);
            message.is_direct = is_direct;
        });
        stage.conversation().offer(record.await).unwrap();
        stage.log.until("done Failed", 1).await;
        let lines = stage.lines();
        let error = lines.iter().find(|line| line.starts_with("error blocked"));
        let error = error.unwrap();
        assert_eq!(error.contains("/private/path"), is_told, "{role:?} {error}");
    }
}

#[tokio::test]
async fn what_tools_read_does_not_leave_before_message_deliver_has_answered() {
    for (is_gated, expected) in [
        (false, "tool_end list_directory: secret.txt"),
        (true, "tool_end list_directory: "),
    ] {
        let stage = Stage::new(LOOK_THEN_SAY);
        std::fs::write(stage.cwd().join("secret.txt"), "").unwrap();
        if is_gated {
            stage
                .engine
                .on(|_: &MessageDeliver| Effect::<MessageDeliver>::none());
        }
        stage.ask("look").await;
        let lines = stage.lines();
        let end = lines
            .iter()
            .find(|line| line.starts_with("tool_end"))
            .unwrap();
        assert_eq!(end, expected);
        let stored = lines.iter().find(|line| line.starts_with("call "));
        assert_eq!(stored.unwrap().contains("secret.txt"), !is_gated);
        let frames = stage.publisher.frames.lock();
        let args = frames.iter().find_map(|(_, frame)| {
            if let Frame::Chunk {
                chunk: Chunk::ToolStart { args, .. },
                ..
            } = frame
            {
                Some(args.clone())
            } else {
                None
            }
        });
        assert!(args.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_answer_is_kept_while_the_disk_is_full() {
    let stage = Stage::new(SAY);
    stage.say("one").await;
    stage.log.until("said one", 1).await;
    stage.publisher.failures.store(1, Ordering::Release);
    stage.log.until("done Completed", 1).await;
    stage.until_finished().await;
    let end = "end final Stop: first".to_owned();
    assert!(stage.lines().contains(&end), "{:#?}", stage.lines());
}

#[tokio::test]
async fn a_message_whose_turn_cannot_be_stored_is_tried_again_and_not_overtaken() {
    let stage = Stage::new(SAY);
    stage.publisher.failures.store(1, Ordering::Release);
    stage.say("one").await;
    stage.log.until("event gateway_error", 1).await;
    assert!(stage.requests.lock().is_empty(), "the model was asked");
    stage.say("two").await;
    stage.log.until("queued FollowUp", 1).await;
    stage.log.until("done Completed", 2).await;
    stage.until_finished().await;
    let lines = stage.lines();
    let order = lines
        .iter()
        .filter(|line| line.starts_with("said") || line.starts_with("start"));
    let order: Vec<&str> = order.map(String::as_str).collect();
    assert_eq!(order, ["said one", "start m1", "said two", "start m2"]);
    let notices = lines.iter().filter(|line| line.starts_with("notice"));
    assert_eq!(notices.count(), 1, "{lines:#?}");
    assert_eq!(stage.heard(0), ["one"]);
    assert_eq!(stage.heard(1), ["one", "two"]);
}

#[tokio::test]
async fn the_model_is_asked_after_the_turn_is_stored() {
    let stage = Stage::new(SAY);
    let publishing = stage.publisher.publishing.lock().await;
    stage.say("one").await;
    // Without hooks, the agent stores the message meanwhile.
    stage.log.until("publish", 1).await;
    stage.until_stored("one").await;
    assert!(stage.requests.lock().is_empty(), "the model was asked");
    drop(publishing);
    stage.log.until("done Completed", 1).await;
    let lines = stage.lines();
    let order: Vec<&str> = lines.iter().map(String::as_str).take(5).collect();
    let expected = ["event message_receive", "publish", "said one", "start m1"];
    assert_eq!(order, [&expected[..], &["model"]].concat());
}

#[tokio::test]
async fn a_full_context_is_compacted_after_the_turn_is_stored() {
    let script = r"
context_window: 1000
turns:
  - {text: long answer, usage: {input_tokens: 800, output_tokens: 100}}
  - {text: next, usage: {input_tokens: 50, output_tokens: 10}}
  - {summary: they talked}
";
    let stage = Stage::new(script);
    stage.ask("one").await;
    stage.until_finished().await;
    let calls = stage.requests.lock().len();
    let publishing = stage.publisher.publishing.lock().await;
    stage.say("two").await;
    stage.log.until("publish", 1).await;
    // Nothing shows that the agent waits, so it gets the time to do something else.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.requests.lock().len(), calls, "the model was asked");
    drop(publishing);
    stage.log.until("done", 1).await;
    stage.until_finished().await;
    let requests = stage.requests.lock();
    let purposes: Vec<_> = requests.iter().map(|request| request.purpose).collect();
    assert_eq!(
        purposes,
        [Purpose::Turn, Purpose::Summary, Purpose::Turn],
        "{:#?}",
        stage.lines()
    );
}

#[tokio::test]
async fn hooks_do_not_hear_of_a_turn_that_is_not_stored() {
    let stage = Stage::new(SAY);
    let seen: Arc<Mutex<Vec<&str>>> = Arc::default();
    let (turns, runs) = (Arc::clone(&seen), Arc::clone(&seen));
    stage.engine.on(move |_: &TurnStart| {
        turns.lock().push("turn_start");
    });
    stage.engine.on(move |_: &AgentEnd| {
        runs.lock().push("agent_end");
    });
    let publishing = stage.publisher.publishing.lock().await;
    stage.say("one").await;
    stage.log.until("publish", 1).await;
    stage.publisher.failures.store(1, Ordering::Release);
    drop(publishing);
    stage.log.until("done Completed", 1).await;
    stage.until_finished().await;
    assert_eq!(*seen.lock(), ["turn_start", "agent_end"]);
}

#[tokio::test]
async fn a_message_whose_turn_was_not_stored_before_a_crash_is_heard_once() {
    let stage = Stage::new(SAY);
    stage.publisher.failures.store(u32::MAX, Ordering::Release);
    stage.say("one").await;
    stage.log.until("event gateway_error", 1).await;
    stage.stop(Duration::ZERO).await;
    stage.publisher.failures.store(0, Ordering::Release);
    stage.restart();
    let unfinished = stage.parts.store.unfinished().await.unwrap();
    assert_eq!(unfinished.len(), 1);
    for record in unfinished {
        assert_eq!(record.state, InboxState::Received);
        stage.conversation().offer(record).unwrap();
    }
    stage.log.until("done Completed", 1).await;
    assert_eq!(stage.heard(0), ["one"]);
}

#[tokio::test]
async fn a_message_whose_turn_cannot_be_stored_can_be_cancelled() {
    let stage = Stage::new(SAY);
    stage.publisher.failures.store(1, Ordering::Release);
    stage.say("one").await;
    stage.log.until("event gateway_error", 1).await;
    assert!(stage.cancel().await);
    stage.until_finished().await;
    assert!(stage.requests.lock().is_empty(), "the model was asked");
    stage.log.until("error cancelled", 1).await;
}

#[tokio::test]
async fn what_an_owner_allowed_for_the_session_is_not_for_members() {
    let script = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo allowed}}]
  - text: Done.
  - tool_calls: [{name: shell, arguments: {cmd: echo allowed}}]
  - text: Done.
";
    let options = Options {
        asks: true,
        ..Options::default()
    };
    let stage = Stage::with(script, options);
    stage.say("go").await;
    stage.log.until("approve", 1).await;
    let frames = stage.publisher.frames.lock().clone();
    let mut frames = frames.into_iter();
    let nonce = frames.find_map(|(_, frame)| {
        if let Frame::Approve { nonce, .. } = frame {
            Some(nonce)
        } else {
            None
        }
    });
    let by = Answerer {
        chat: &chat("ann"),
        sender: &sender("ann"),
        role: SenderRole::Owner,
    };
    let choice = ApprovalChoice::AllowSession;
    let told = stage
        .parts
        .approvals
        .answer(&nonce.unwrap(), choice, None, by);
    assert_eq!(told, None);
    stage.log.until("done Completed", 1).await;
    stage.say_as("bob", SenderRole::Member, "go").await;
    stage.log.until("done Completed", 2).await;
    let lines = stage.lines();
    let ran = lines
        .iter()
        .filter(|line| line.starts_with("tool_end shell: allowed"));
    assert_eq!(ran.count(), 1, "{lines:#?}");
}
