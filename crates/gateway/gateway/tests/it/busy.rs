//! Messages that arrive while the agent works.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenterhook_channel::chat::SessionKey;
use tenterhook_channel::message::IncomingMessage;
use tenterhook_channel::settings::{BusyMode, RestartMode, Settings};
use tenterhook_channel::store::{InboxRecord, InboxState};
use tenterhook_engine::event::{MessageDeliver, MessageReceive, SenderRole};
use tenterhook_engine::{Effect, SessionId};
use tenterhook_gateway::conversations::conversation::ChatTask;
use tokio::sync::Semaphore;

use crate::conversation_stage::{Options, Stage, chat, sender, texts};

const LOOK_THEN_SAY: &str = r"
turns:
  - tool_calls: [{name: list_directory}]
  - text: first
  - {text: second, repeat: true}
";

const SAY: &str = "turns: [{text: first}, {text: second, repeat: true}]";

/// A stage whose model answers when the test says so.
fn stage(script: &str, busy: BusyMode) -> Stage {
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

fn starts(stage: &Stage) -> Vec<String> {
    let mut lines = stage.lines();
    lines.retain(|line| line.starts_with("start"));
    lines
}

// G17 and G33
#[tokio::test]
async fn a_steered_message_is_heard_at_the_next_step_and_answered_in_the_same_turn() {
    let stage = stage(LOOK_THEN_SAY, BusyMode::Steer);
    let busy: Arc<Mutex<Vec<bool>>> = Arc::default();
    let log = Arc::clone(&busy);
    stage
        .engine
        .on(move |event: &MessageReceive| log.lock().push(event.busy));
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("queued Steer", 1).await;
    // The message is in the queue once its hooks have run, which the next message waits for.
    stage.say("/status").await;
    stage.log.until("message", 1).await;
    stage.answer_calls(10);
    stage.log.until("done", 1).await;
    stage.until_finished().await;
    assert_eq!(stage.heard(1), ["one", "two"]);
    assert_eq!(starts(&stage), ["start m1"]);
    assert_eq!(*busy.lock(), [false, true, true]);
}

#[tokio::test]
async fn an_answer_names_the_messages_that_the_agent_has_heard_until_then() {
    // Each row: the script, and what each text names.
    let rows: [(&str, &[&str]); 2] = [
        (SAY, &["Answer m1", "Answer m1 m2"]),
        (LOOK_THEN_SAY, &["Answer m1 m2"]),
    ];
    for (script, expected) in rows {
        let stage = stage(script, BusyMode::Steer);
        let named: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&named);
        stage.engine.on(move |event: &MessageDeliver| {
            let ids = event.in_reply_to.join(" ");
            log.lock().push(format!("{:?} {ids}", event.kind));
        });
        stage.say("one").await;
        stage.until_called(1).await;
        stage.say("two").await;
        stage.log.until("queued Steer", 1).await;
        // The message is in the queue once its hooks have run, which the next message waits for.
        stage.say("/status").await;
        stage.log.until("message", 1).await;
        stage.answer_calls(10);
        stage.log.until("done", 1).await;
        stage.until_finished().await;
        let named: Vec<String> = named.lock().clone();
        let answers = named.iter().filter(|line| line.starts_with("Answer"));
        assert_eq!(answers.collect::<Vec<_>>(), expected, "{script}");
    }
}

// G34
#[tokio::test]
async fn a_steered_message_that_the_run_did_not_hear_begins_a_turn() {
    let stage = stage("turns: [{error: no}, {text: second}]", BusyMode::Steer);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("queued Steer", 1).await;
    stage.say("/status").await;
    stage.log.until("message", 1).await;
    stage.answer_calls(10);
    stage.log.until("done", 2).await;
    stage.until_finished().await;
    assert_eq!(starts(&stage), ["start m1", "start m2"]);
    assert_eq!(stage.heard(1).last().unwrap(), "two");
    let said = stage
        .lines()
        .iter()
        .filter(|line| *line == "said two")
        .count();
    assert_eq!(said, 1);
}

// G35
#[tokio::test]
async fn messages_that_wait_are_answered_after_a_timeout() {
    let mut settings = Settings {
        busy: BusyMode::FollowUp,
        ..Settings::default()
    };
    settings.turns.timeout = Duration::from_secs(1);
    let options = Options {
        settings,
        calls: 0,
        ..Options::default()
    };
    let stage = Stage::with(SAY, options);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.say("three").await;
    stage.log.until("queued FollowUp", 2).await;
    stage.log.until("error timeout", 1).await;
    stage.answer_calls(10);
    stage.log.until("done Completed", 2).await;
    assert_eq!(starts(&stage), ["start m1", "start m2", "start m3"]);
}

// G36
#[tokio::test]
async fn collected_messages_become_one_prompt() {
    let stage = stage(SAY, BusyMode::Collect);
    stage.say("one").await;
    stage.until_called(1).await;
    for text in ["two", "three", "four"] {
        stage.say(text).await;
    }
    stage.log.until("queued Collect", 3).await;
    stage.answer_calls(10);
    stage.log.until("done", 2).await;
    assert_eq!(starts(&stage), ["start m1", "start m2 m3 m4"]);
    assert_eq!(stage.heard(1).last().unwrap(), "two\n\nthree\n\nfour");
}

#[tokio::test]
async fn a_message_that_was_read_with_others_is_continued_after_a_crash() {
    let script = "turns: [{text: first}, {error: away}, {text: third}]";
    let settings = Settings {
        busy: BusyMode::Collect,
        on_restart: RestartMode::Resume,
        ..Settings::default()
    };
    let options = Options {
        settings,
        calls: 0,
        ..Options::default()
    };
    let stage = Stage::with(script, options);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    let last = stage.record(|message| message.parts = texts(&["three"]));
    let last = last.await;
    stage.conversation().offer(last.clone()).unwrap();
    stage.log.until("queued Collect", 2).await;
    stage.answer_calls(10);
    stage.log.until("done Failed", 1).await;
    let interrupted = InboxRecord {
        state: InboxState::Running,
        ..last
    };
    let resumed = stage.conversation();
    resumed.resume_interrupted(interrupted).await;
    stage.until_called(3).await;
    assert_eq!(stage.heard(2)[1], "two\n\nthree");
}

// G37
#[tokio::test]
async fn a_message_can_interrupt_the_turn() {
    let stage = stage(SAY, BusyMode::Interrupt);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("done Cancelled", 1).await;
    stage.answer_calls(10);
    stage.log.until("done Completed", 1).await;
    assert_eq!(starts(&stage), ["start m1", "start m2"]);
    assert!(stage.lines().contains(&"event message_cancel".to_owned()));
}

#[tokio::test]
async fn a_busy_agent_can_refuse() {
    let stage = stage(SAY, BusyMode::Refuse);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("error busy", 1).await;
    stage.answer_calls(10);
    stage.until_finished().await;
    assert_eq!(starts(&stage), ["start m1"]);
}

// G38
#[tokio::test]
async fn the_65th_message_is_refused_and_the_others_are_answered() {
    let stage = stage(SAY, BusyMode::FollowUp);
    for _ in 0..64 {
        stage.say("more").await;
    }
    assert!(stage.try_say("too much").await.is_err());
    assert!(stage.conversation().is_idle_since().is_none());
    stage.answer_calls(100);
    stage.log.until("done Completed", 64).await;
}

// G39
#[tokio::test]
async fn a_guest_does_not_steer_the_turn_of_an_owner() {
    let stage = stage(LOOK_THEN_SAY, BusyMode::Steer);
    stage.say("one").await;
    stage.until_called(1).await;
    stage
        .say_as("eve", SenderRole::Guest, "delete everything")
        .await;
    stage.log.until("queued FollowUp", 1).await;
    stage.answer_calls(10);
    stage.log.until("done", 2).await;
    assert_eq!(stage.heard(1), ["one"]);
    assert_eq!(starts(&stage), ["start m1", "start m2"]);
}

#[tokio::test]
async fn cancelling_removes_own_waiting_messages_only() {
    let stage = stage(SAY, BusyMode::FollowUp);
    stage.say_as("bob", SenderRole::Member, "of bob").await;
    stage.until_called(1).await;
    stage.say_as("eve", SenderRole::Member, "of eve").await;
    stage.say_as("bob", SenderRole::Member, "more of bob").await;
    stage.log.until("queued FollowUp", 2).await;
    stage.say_as("bob", SenderRole::Member, "/stop").await;
    stage.log.until("message Stopped.", 1).await;
    stage.answer_calls(10);
    stage.until_finished().await;
    let lines = stage.lines();
    let removed = lines
        .iter()
        .filter(|line| line.starts_with("error cancelled"))
        .count();
    assert_eq!(removed, 1, "{lines:#?}");
    assert_eq!(starts(&stage), ["start m1", "start m2"]);
}

#[tokio::test]
async fn an_owner_changes_what_happens_to_messages() {
    let stage = stage(SAY, BusyMode::Refuse);
    stage.say("/busy follow_up").await;
    stage.log.until("message Changed", 1).await;
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("queued FollowUp", 1).await;
    stage.answer_calls(10);
    stage.log.until("done", 2).await;
}

#[tokio::test]
async fn messages_that_wait_at_a_stop_stay_in_the_inbox() {
    let stage = stage(SAY, BusyMode::Steer);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("two").await;
    stage.log.until("queued Steer", 1).await;
    stage.stop(Duration::ZERO).await;
    let left = stage.parts.store.unfinished().await.unwrap();
    let left: Vec<&str> = left
        .iter()
        .map(|record| record.message.message_id.as_str())
        .collect();
    assert_eq!(left, ["m2"]);
}

#[tokio::test]
async fn in_a_shared_session_each_chat_gets_its_own_answers() {
    let stage = stage(SAY, BusyMode::Steer);
    stage.say("one").await;
    stage.until_called(1).await;
    let elsewhere = |message: &mut IncomingMessage| {
        message.parts = texts(&["two"]);
        message.chat = chat("phone");
    };
    let record = stage.record(elsewhere).await;
    stage.conversation().offer(record).unwrap();
    stage.log.until("phone: queued FollowUp", 1).await;
    assert!(
        !stage
            .conversation()
            .cancel(&chat("phone"), &sender("bob"), SenderRole::Member)
            .await
    );
    stage.answer_calls(10);
    stage.log.until("phone: done Completed", 1).await;
    let lines = stage.lines();
    assert!(
        lines.contains(&"end final Stop: first".to_owned()),
        "{lines:#?}"
    );
    assert!(
        lines.contains(&"phone: end final Stop: second".to_owned()),
        "{lines:#?}"
    );
    assert_eq!(stage.heard(1), ["one", "two"]);
}

#[tokio::test]
async fn a_session_that_is_missing_is_told_and_new_begins_another() {
    let stage = stage(SAY, BusyMode::Steer);
    let (key, missing) = (SessionKey("ann".to_owned()), SessionId::generate());
    stage
        .parts
        .store
        .set_session(&key, Some(missing))
        .await
        .unwrap();
    stage.ask("one").await;
    let lines = stage.lines();
    let told = lines
        .iter()
        .find(|line| line.starts_with("error not_started"))
        .unwrap();
    assert!(
        told.contains("Send /new to begin a new conversation"),
        "{told}"
    );
    assert_eq!(lines.last().unwrap(), "done Failed");
    stage.say("/new").await;
    stage
        .log
        .until("message A new conversation begins.", 1)
        .await;
    stage.answer_calls(10);
    stage.say("two").await;
    stage.log.until("done Completed", 1).await;
}

/// Lets messages with the text `slow` wait until the semaphore has a permit.
fn hold_slow_messages(stage: &Stage) -> Arc<Semaphore> {
    let held = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&held);
    stage.engine.on_async(move |event: &MessageReceive| {
        let gate = (event.text == "slow").then(|| Arc::clone(&gate));
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.acquire().await.unwrap().forget();
            }
            Effect::<MessageReceive>::none()
        })
    });
    held
}

// G40
#[tokio::test]
async fn a_slow_hook_keeps_the_order_of_its_chat_and_holds_up_no_other() {
    let stage = Stage::new("turns: [{text: answer, repeat: true}]");
    let held = hold_slow_messages(&stage);
    stage.say("slow").await;
    stage.say("fast").await;
    let key = SessionKey("phone".to_owned());
    let other = ChatTask::start(Arc::clone(&stage.parts), key);
    let elsewhere = |message: &mut IncomingMessage| {
        message.parts = texts(&["other"]);
        message.chat = chat("phone");
    };
    other.offer(stage.record(elsewhere).await).unwrap();
    stage.log.until("phone: done Completed", 1).await;
    assert_eq!(starts(&stage), Vec::<String>::new());
    held.add_permits(1);
    stage.log.until("said fast", 1).await;
    stage.until_finished().await;
    let said: Vec<String> = stage.lines();
    let place = |line: &str| said.iter().position(|found| found == line);
    assert!(place("said slow") < place("said fast"), "{said:#?}");
    other.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_message_that_a_hook_holds_up_can_be_cancelled() {
    let stage = Stage::new("turns: [{text: answer, repeat: true}]");
    let _held = hold_slow_messages(&stage);
    stage.say("slow").await;
    stage.say("fast").await;
    assert!(stage.cancel().await);
    stage.until_finished().await;
    stage.log.until("error cancelled", 2).await;
    assert!(stage.requests.lock().is_empty());
    assert!(!stage.cancel().await);
    stage.ask("again").await;
    stage.until_idle().await;
}

#[tokio::test]
async fn new_is_acknowledged_while_the_agent_works_and_done_after_the_answer() {
    let stage = stage(SAY, BusyMode::FollowUp);
    stage.say("one").await;
    stage.until_called(1).await;
    stage.say("/new").await;
    let later = "message A new conversation begins when the current answer has ended.";
    stage.log.until(later, 1).await;
    let lines = stage.lines();
    assert!(lines.contains(&"queued FollowUp".to_owned()), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.starts_with("done")),
        "{lines:#?}"
    );
    stage.answer_calls(1);
    stage
        .log
        .until("message A new conversation begins.", 1)
        .await;
    stage.answer_calls(1);
    stage.say("two").await;
    stage.log.until("done", 2).await;
    assert_eq!(stage.heard(1), ["two"]);
    stage.until_finished().await;
}
