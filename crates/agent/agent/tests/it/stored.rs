//! Sessions that are stored, resumed and forked, and switches between branches.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tenterhook_agent::frontend::Approval;
use tenterhook_agent::sessions::SessionError;
use tenterhook_agent::{
    Agent, AgentConfig, CancellationToken, LeaveBranch, SessionStore, SessionSwitchError,
    SessionSwitched,
};
use tenterhook_engine::event::{
    BeforeLlmCall, SessionBeforeFork, SessionBeforeSwitch, SessionBeforeTree,
    SessionDirectoryResolve, SessionEndReason, SessionSource, SessionStart, SessionTree, TurnEnd,
    UserPromptSubmit,
};
use tenterhook_engine::{Effect, EntryId, SessionId};

use crate::stage::Stage;

const TALK: &str = "turns: [{text: hello, repeat: true}]";

fn sessions(stage: &Stage) -> SessionStore {
    SessionStore::of_project(&stage.path().join("data"), stage.path())
}

/// Starts an agent whose session is stored, and prompts it.
async fn stored(stage: &Stage) -> Agent {
    let config = AgentConfig {
        sessions: Some(sessions(stage)),
        ..stage.config(TALK)
    };
    let mut agent = config.build(stage.engine.clone()).unwrap();
    say(&mut agent, "one").await;
    agent
}

async fn say(agent: &mut Agent, text: &str) {
    agent.prompt(text, &CancellationToken::new()).await;
}

fn texts(agent: &Agent) -> Vec<String> {
    let messages = agent.session().messages().into_iter();
    messages.map(|message| message.content).collect()
}

/// Returns every session file with its contents.
fn files(stage: &Stage) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(sessions(stage).folder()) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Returns the session events since `from`, with their key fields.
fn passages(stage: &Stage, from: usize) -> Vec<String> {
    let heard = stage.heard();
    let events = heard.iter().skip(from);
    events
        .filter(|heard| heard.name.starts_with("session_"))
        .map(|heard| {
            let said = ["source", "reason", "position"].map(|key| heard.payload.get(key));
            let word = said.into_iter().flatten().find_map(Value::as_str);
            format!("{} {}", heard.name, word.unwrap_or_default())
        })
        .collect()
}

fn never() -> CancellationToken {
    CancellationToken::new()
}

// O20: events report that entries are stored, and that the agent has finished.
#[tokio::test]
async fn what_a_turn_made_is_stored_when_save_point_says_so() {
    let stage = Stage::empty();
    let folder = sessions(&stage);
    let log: Arc<Mutex<Vec<usize>>> = Arc::default();
    let counts = Arc::clone(&log);
    stage.engine.subscribe(move |event| {
        if event.event().name() == "save_point" {
            let id = &event.envelope().origin.session_id;
            let read = folder.read(id).unwrap().session;
            log.lock().unwrap().push(read.entries().len());
        }
    });
    let mut agent = stored(&stage).await;
    say(&mut agent, "two").await;
    assert_eq!(*counts.lock().unwrap(), [2, 4]);
    let order: Vec<String> = stage.names();
    let place = |name: &str| order.iter().position(|found| found == name).unwrap();
    assert!(place("turn_end") < place("save_point"));
    assert!(place("save_point") < place("agent_end"));
    assert!(place("agent_end") < place("agent_settled"));
    assert!(place("agent_settled") < place("waiting_for_user"));
}

#[tokio::test]
async fn a_session_that_is_only_memory_has_no_save_points() {
    let stage = Stage::empty();
    stage.play(TALK).await;
    assert!(!stage.names().contains(&"save_point".to_owned()));
    assert!(stage.names().contains(&"agent_settled".to_owned()));
}

#[tokio::test]
async fn an_opened_session_goes_on_and_is_written_on() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &SessionStart| Effect::none().context("rules"));
    let agent = stored(&stage).await;
    let id = agent.session().id().clone();
    agent.end_session(SessionEndReason::Quit).await;
    let opened = sessions(&stage).open(&id).unwrap();
    let config = AgentConfig {
        sessions: Some(sessions(&stage)),
        ..stage.config(TALK)
    };
    let mut resumed = AgentConfig {
        session: Some(opened.session),
        ..config
    }
    .build(stage.engine.clone())
    .unwrap();
    resumed.start_session(SessionSource::Resume).await;
    say(&mut resumed, "two").await;
    assert_eq!(texts(&resumed), ["rules", "one", "hello", "two", "hello"]);
    let read = sessions(&stage).read(&id).unwrap();
    assert_eq!(&read.session, resumed.session());
    let turns: Vec<u32> = stage
        .all::<TurnEnd>()
        .iter()
        .map(|turn| turn.turn_number)
        .collect();
    assert_eq!(turns, [1, 2]);
}

#[tokio::test]
async fn a_new_session_takes_the_place_of_the_old_one() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    let (old, from) = (agent.session().id().clone(), stage.heard().len());
    agent.new_session(&never()).await.unwrap();
    assert_eq!(texts(&agent), [""; 0]);
    assert_ne!(agent.session().id(), &old);
    assert_eq!(
        passages(&stage, from),
        [
            "session_before_switch new",
            "session_end new",
            "session_switch new",
            "session_start new"
        ]
    );
    let heard = stage.heard();
    let of = |name: &str| heard.iter().rfind(|heard| heard.name == name).unwrap();
    let new = agent.session().id().as_str();
    assert_eq!(of("session_end").session, old.as_str());
    assert_eq!(of("session_end").payload["target_session"], new);
    for name in ["session_switch", "session_start"] {
        assert_eq!(of(name).session, new);
        assert_eq!(of(name).payload["previous_session"], old.as_str());
    }
    say(&mut agent, "two").await;
    assert_eq!(files(&stage).len(), 2);
}

#[tokio::test]
async fn a_stored_session_takes_the_place_of_another() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    let first = agent.session().id().clone();
    agent.new_session(&never()).await.unwrap();
    say(&mut agent, "two").await;
    let from = stage.heard().len();
    agent.resume(&first, &never()).await.unwrap();
    assert_eq!(texts(&agent), ["one", "hello"]);
    assert_eq!(
        passages(&stage, from),
        [
            "session_before_switch resume",
            "session_end resume",
            "session_switch resume",
            "session_start resume"
        ]
    );
    say(&mut agent, "three").await;
    assert_eq!(texts(&agent), ["one", "hello", "three", "hello"]);
}

#[tokio::test]
async fn a_fork_goes_on_before_words_of_the_user_and_after_anything_else() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    say(&mut agent, "two").await;
    let old = files(&stage);
    let (first, from) = (agent.session().id().clone(), stage.heard().len());
    let moved = agent.fork(&"3".into(), &never()).await.unwrap();
    assert_eq!(moved.words.as_deref(), Some("two"));
    assert_eq!(texts(&agent), ["one", "hello"]);
    assert_eq!(agent.session().forked_from(), Some(&first));
    assert_eq!(
        passages(&stage, from),
        [
            "session_before_fork before",
            "session_end fork",
            "session_fork ",
            "session_start fork"
        ]
    );
    let moved = agent.fork(&"2".into(), &never()).await.unwrap();
    assert_eq!(
        (moved, texts(&agent).len()),
        (SessionSwitched::default(), 2)
    );
    let new = files(&stage);
    assert_eq!(new.len(), 3);
    assert!(new.contains(&old[0]));
}

#[tokio::test]
async fn a_hook_lets_a_fork_begin_without_the_conversation() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &SessionBeforeFork| Effect::none().skip_conversation_restore(true));
    let mut agent = stored(&stage).await;
    agent.fork(&"2".into(), &never()).await.unwrap();
    assert_eq!(texts(&agent), [""; 0]);
}

#[tokio::test]
async fn the_conversation_goes_on_at_another_entry_and_the_branch_that_is_left_stays() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    say(&mut agent, "two").await;
    let from = stage.heard().len();
    let moved = agent
        .go_to(&"3".into(), LeaveBranch::default(), &never())
        .await
        .unwrap();
    assert_eq!(moved.words.as_deref(), Some("two"));
    say(&mut agent, "other").await;
    assert_eq!(texts(&agent), ["one", "hello", "other", "hello"]);
    assert_eq!(agent.session().tree().len(), 6);
    let heard = stage.heard();
    let asked = heard
        .iter()
        .find(|heard| heard.name == "session_before_tree");
    let preparation = &asked.unwrap().payload["preparation"];
    assert_eq!(preparation["old_leaf_id"], "4");
    assert_eq!(preparation["common_ancestor_id"], "3");
    assert_eq!(
        preparation["entries_to_summarize"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        passages(&stage, from),
        ["session_before_tree ", "session_tree "]
    );
    assert_eq!(stage.field("session_tree", "new_leaf_id"), ["2"]);
    let read = sessions(&stage).read(agent.session().id()).unwrap();
    assert_eq!(&read.session, agent.session());
    agent
        .go_to(&"4".into(), LeaveBranch::default(), &never())
        .await
        .unwrap();
    assert_eq!(texts(&agent), ["one", "hello", "two", "hello"]);
}

#[tokio::test]
async fn a_branch_that_is_left_is_summarised_where_the_user_wants_it() {
    let stage = Stage::empty();
    let script =
        "turns: [{text: hello}, {text: bye}, {summary: They said bye.}, {text: hello again}]";
    let config = AgentConfig {
        sessions: Some(sessions(&stage)),
        ..stage.config(script)
    };
    let mut agent = config.build(stage.engine.clone()).unwrap();
    say(&mut agent, "one").await;
    say(&mut agent, "two").await;
    let entry = EntryId::from("2");
    agent
        .go_to(&entry, LeaveBranch::summarised(), &never())
        .await
        .unwrap();
    let told = texts(&agent);
    assert_eq!(told.len(), 3);
    assert!(
        told[2].ends_with("This is a summary of that part:\n\nThey said bye."),
        "{told:?}"
    );
    let moved: SessionTree = stage.only();
    assert_eq!(
        (moved.from_hook, moved.old_leaf_id),
        (false, Some("4".into()))
    );
    assert_eq!(
        moved.summary_entry.map(|entry| entry.id),
        Some(moved.new_leaf_id)
    );
    assert!(
        stage
            .only::<SessionBeforeTree>()
            .preparation
            .user_wants_summary
    );
    let read = sessions(&stage).read(agent.session().id()).unwrap();
    assert_eq!(&read.session, agent.session());
}

#[tokio::test]
async fn a_hooks_summary_of_a_branch_counts_if_the_user_wants_one() {
    for (leaving, expected) in [(LeaveBranch::default(), 2), (LeaveBranch::summarised(), 3)] {
        let stage = Stage::empty();
        stage.engine.on(|_: &SessionBeforeTree| {
            Effect::<SessionBeforeTree>::supply(&"They said bye.".to_owned())
        });
        let mut agent = stored(&stage).await;
        say(&mut agent, "two").await;
        let is_wanted = leaving.is_summarised;
        agent.go_to(&"2".into(), leaving, &never()).await.unwrap();
        assert_eq!(texts(&agent).len(), expected);
        let moved: SessionTree = stage.only();
        assert_eq!(moved.from_hook, is_wanted);
    }
}

#[tokio::test]
async fn a_summary_that_cannot_be_made_leaves_everything_as_it_was() {
    let stage = Stage::empty();
    let script = "turns: [{text: hello}, {text: bye}, {error: the service is gone}]";
    let config = AgentConfig {
        sessions: Some(sessions(&stage)),
        ..stage.config(script)
    };
    let mut agent = config.build(stage.engine.clone()).unwrap();
    say(&mut agent, "one").await;
    say(&mut agent, "two").await;
    let (before, session) = (files(&stage), agent.session().clone());
    let done = agent
        .go_to(&"2".into(), LeaveBranch::summarised(), &never())
        .await;
    assert!(
        matches!(done, Err(SessionSwitchError::Summary(_))),
        "{done:?}"
    );
    assert_eq!((files(&stage), agent.session()), (before, &session));
}

#[tokio::test]
async fn a_hook_labels_the_entry_that_the_user_goes_to() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &SessionBeforeTree| Effect::none().label(Some("start".to_owned())));
    let mut agent = stored(&stage).await;
    agent
        .go_to(&"1".into(), LeaveBranch::default(), &never())
        .await
        .unwrap();
    let read = sessions(&stage).read(agent.session().id()).unwrap();
    assert_eq!(read.session.labels()[&EntryId::from("1")], "start");
}

#[tokio::test]
async fn the_user_says_what_a_summary_of_a_branch_looks_at_and_labels_it() {
    for (replaces, is_usual) in [(false, true), (true, false)] {
        let stage = Stage::empty();
        let script = "turns: [{text: hello}, {text: bye}, {summary: They said bye.}]";
        let mut agent = stage.config(script).build(stage.engine.clone()).unwrap();
        say(&mut agent, "one").await;
        say(&mut agent, "two").await;
        let leaving = LeaveBranch {
            instructions: Some("Only names.".to_owned()),
            replaces_instructions: replaces,
            label: Some("names".to_owned()),
            ..LeaveBranch::summarised()
        };
        agent.go_to(&"2".into(), leaving, &never()).await.unwrap();
        let preparation = stage.only::<SessionBeforeTree>().preparation;
        assert_eq!(
            preparation.custom_instructions.as_deref(),
            Some("Only names.")
        );
        assert_eq!(preparation.replace_instructions, replaces);
        let asked = stage.all::<BeforeLlmCall>().pop().unwrap().messages;
        assert_eq!(asked[0].content.contains("You summarise"), is_usual);
        assert!(
            asked
                .iter()
                .any(|message| message.content.contains("Only names."))
        );
        let written = stage.only::<SessionTree>().summary_entry.unwrap();
        let labels = agent.session().labels();
        assert_eq!(labels.get(&written.id).map(String::as_str), Some("names"));
    }
}

// P35: a cancelled switch changes nothing.
#[tokio::test]
async fn a_move_in_the_tree_that_is_cancelled_leaves_everything_as_it_was() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    say(&mut agent, "two").await;
    let cancel = never();
    let in_hook = cancel.clone();
    stage.engine.on(move |_: &SessionBeforeTree| {
        in_hook.cancel();
        Effect::none()
    });
    let (before, session) = (files(&stage), agent.session().clone());
    let done = agent
        .go_to(&"2".into(), LeaveBranch::summarised(), &cancel)
        .await;
    assert!(
        matches!(done, Err(SessionSwitchError::Cancelled)),
        "{done:?}"
    );
    assert_eq!((files(&stage), agent.session()), (before, &session));
    assert!(stage.all::<SessionTree>().is_empty());
}

// P35: a switch to the current entry changes nothing.
#[tokio::test]
async fn a_move_to_the_leaf_asks_no_hook() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    let moved = agent
        .go_to(&"2".into(), LeaveBranch::summarised(), &never())
        .await;
    assert_eq!(moved.unwrap(), SessionSwitched::default());
    assert!(stage.all::<SessionBeforeTree>().is_empty());
}

#[tokio::test]
async fn a_summary_of_a_branch_is_no_word_of_the_user() {
    let stage = Stage::empty();
    let script = "turns: [{text: hello}, {text: bye}, {summary: They said bye.}, {text: so}]";
    let mut agent = stage.config(script).build(stage.engine.clone()).unwrap();
    say(&mut agent, "one").await;
    say(&mut agent, "two").await;
    agent
        .go_to(&"2".into(), LeaveBranch::summarised(), &never())
        .await
        .unwrap();
    let summary = agent.session().leaf().unwrap().clone();
    say(&mut agent, "three").await;
    let moved = agent
        .go_to(&summary, LeaveBranch::default(), &never())
        .await
        .unwrap();
    assert_eq!(moved, SessionSwitched::default());
    assert_eq!(agent.session().leaf(), Some(&summary));
}

#[tokio::test]
async fn what_the_user_said_is_on_the_disk_before_a_model_is_asked() {
    let stage = Stage::empty();
    let folder = sessions(&stage);
    let log: Arc<Mutex<Vec<usize>>> = Arc::default();
    let counts = Arc::clone(&log);
    stage.engine.subscribe(move |event| {
        if event.event().name() == "before_llm_call" {
            let id = &event.envelope().origin.session_id;
            let read = folder.read(id).unwrap().session;
            log.lock().unwrap().push(read.entries().len());
        }
    });
    let mut agent = stored(&stage).await;
    agent.handle().steer("and two").await.unwrap();
    say(&mut agent, "two").await;
    assert_eq!(*counts.lock().unwrap(), [1, 4]);
    // Entries that are stored before a model call do not count as the end of a turn.
    assert_eq!(stage.field("save_point", "x").len(), 2);
}

#[tokio::test]
async fn a_prompt_that_a_hook_refuses_makes_no_file() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &UserPromptSubmit| Effect::<UserPromptSubmit>::block("no"));
    let agent = stored(&stage).await;
    agent.end_session(SessionEndReason::Quit).await;
    assert!(files(&stage).is_empty());
}

#[tokio::test]
async fn a_session_has_a_name_that_hooks_are_told_and_lists_show() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    agent.name_session(" the \u{1b}parser\n").await;
    agent.name_session("the parser").await;
    assert_eq!(stage.field("session_info_change", "name"), ["the parser"]);
    let listed = sessions(&stage).list().unwrap().remove(0).overview.unwrap();
    assert_eq!(listed.name.as_deref(), Some("the parser"));
    agent
        .go_to(&"1".into(), LeaveBranch::default(), &never())
        .await
        .unwrap();
    assert_eq!(agent.session().name(), Some("the parser"));
    agent.name_session("").await;
    let read = sessions(&stage).read(agent.session().id()).unwrap();
    assert_eq!(
        (read.session.name(), &read.session),
        (None, agent.session())
    );
}

#[tokio::test]
async fn hooks_say_where_sessions_are_stored() {
    let stage = Stage::empty();
    stage.engine.on(|event: &SessionDirectoryResolve| {
        assert!(event.default_directory.ends_with("sessions/x"));
        Effect::none().replace_directory("elsewhere")
    });
    let default = sessions(&stage).in_folder(stage.path().join("sessions/x"));
    let config = AgentConfig {
        sessions: Some(default),
        ..stage.config(TALK)
    };
    let config = config.resolve_sessions(&stage.engine).await;
    let folder = stage.path().join("elsewhere");
    assert_eq!(config.sessions.as_ref().unwrap().folder(), folder);
    let mut agent = config.build(stage.engine.clone()).unwrap();
    say(&mut agent, "one").await;
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let resolved = &stage.heard()[0];
    assert_eq!(resolved.name, "session_directory_resolve");
    assert_eq!(resolved.session, agent.session().id().as_str());

    let stage = Stage::empty();
    let config = stage.config(TALK).resolve_sessions(&stage.engine).await;
    assert!(config.sessions.is_none());
    assert!(stage.heard().is_empty());
}

#[tokio::test]
async fn a_reload_ends_the_session_for_the_old_hooks_and_starts_it_for_the_new_ones() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    let (id, from) = (agent.session().id().clone(), stage.heard().len());
    let engine = stage.engine.clone();
    let reloading = async move {
        engine.on(|_: &SessionStart| Effect::none().context("new rules"));
    };
    agent.reload(reloading).await;
    assert_eq!(
        passages(&stage, from),
        ["session_end reload", "session_start reload"]
    );
    assert_eq!(
        stage.field("resources_discover", "reason"),
        ["startup", "reload"]
    );
    assert_eq!(agent.session().id(), &id);
    assert_eq!(texts(&agent), ["new rules", "one", "hello"]);
}

// O26: a blocked switch to another session does not end the current one.
#[tokio::test]
async fn what_a_hook_blocks_leaves_everything_as_it_was() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    let other = agent.session().id().clone();
    agent.new_session(&never()).await.unwrap();
    say(&mut agent, "two").await;
    let engine = &stage.engine;
    engine.on(|_: &SessionBeforeSwitch| Effect::<SessionBeforeSwitch>::block("stay"));
    engine.on(|_: &SessionBeforeFork| Effect::<SessionBeforeFork>::block("stay"));
    engine.on(|_: &SessionBeforeTree| Effect::<SessionBeforeTree>::block("stay"));
    let (before, session) = (files(&stage), agent.session().clone());
    let from = stage.heard().len();
    let never = never();
    let refusals = [
        agent.new_session(&never).await.unwrap_err(),
        agent.resume(&other, &never).await.unwrap_err(),
        agent.fork(&"1".into(), &never).await.unwrap_err(),
        agent
            .go_to(&"1".into(), LeaveBranch::default(), &never)
            .await
            .unwrap_err(),
    ];
    for (refusal, event) in refusals.iter().zip(["switch", "switch", "fork", "tree"]) {
        let expected = format!("a session_before_{event} hook blocked it: stay");
        assert_eq!(refusal.to_string(), expected);
    }
    assert_eq!(passages(&stage, from).len(), 4);
    assert_eq!((files(&stage), agent.session()), (before, &session));
}

#[tokio::test]
async fn what_the_user_allowed_for_a_session_is_asked_again_in_the_next() {
    let stage = Stage::attended([Approval::AllowSession, Approval::AllowSession]);
    let call = "{tool_calls: [{name: shell, arguments: {cmd: echo hi}}]}, {text: done}";
    let script = format!("turns: [{call}, {call}, {call}]");
    let mut agent = stage.config(&script).build(stage.engine.clone()).unwrap();
    say(&mut agent, "one").await;
    say(&mut agent, "two").await;
    assert_eq!(stage.human.asked().len(), 1);
    agent.new_session(&never()).await.unwrap();
    say(&mut agent, "three").await;
    assert_eq!(stage.human.asked().len(), 2);
}

#[tokio::test]
async fn a_passage_to_what_is_not_there_asks_no_hook() {
    let stage = Stage::empty();
    let mut agent = stored(&stage).await;
    let current: SessionId = agent.session().id().clone();
    let from = stage.heard().len();
    let never = never();
    for (error, expected) in [
        (
            agent.resume(&current, &never).await.unwrap_err(),
            "is already the current session",
        ),
        (
            agent.resume(&"x".into(), &never).await.unwrap_err(),
            "there is no session `x` in ",
        ),
        (
            agent.fork(&"9".into(), &never).await.unwrap_err(),
            "the session has no entry `9`",
        ),
        (
            agent
                .go_to(&"9".into(), LeaveBranch::default(), &never)
                .await
                .unwrap_err(),
            "the session has no entry `9`",
        ),
    ] {
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(
        agent
            .go_to(&"2".into(), LeaveBranch::default(), &never)
            .await
            .unwrap(),
        SessionSwitched::default()
    );
    assert!(passages(&stage, from).is_empty());
}

#[tokio::test]
async fn a_session_that_another_agent_leads_is_not_gone_on_with() {
    let stage = Stage::empty();
    let first = stored(&stage).await;
    let mut second = stored(&stage).await;
    let own = second.session().id().clone();
    let error = second.resume(first.session().id(), &never()).await;
    assert!(matches!(
        error,
        Err(SessionSwitchError::Session(SessionError::InUse { .. }))
    ));
    assert_eq!(second.session().id(), &own);
    drop(first);
}

#[tokio::test]
async fn a_session_that_cannot_be_stored_goes_on_and_the_user_is_told_once() {
    let stage = Stage::empty();
    // A file exists where the folder should be.
    fs::write(stage.path().join("data"), "").unwrap();
    let mut agent = stored(&stage).await;
    say(&mut agent, "two").await;
    assert_eq!(texts(&agent).len(), 4);
    let told = stage.field("notification", "message");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("cannot store the session: cannot use `"));
    assert!(!stage.names().contains(&"save_point".to_owned()));
    fs::remove_file(stage.path().join("data")).unwrap();
    say(&mut agent, "three").await;
    let read = sessions(&stage).read(agent.session().id()).unwrap();
    assert_eq!(&read.session, agent.session());
}
