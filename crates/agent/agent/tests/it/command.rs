//! Shell commands that the user runs.

use tenterhook_agent::{
    Agent, AgentConfig, CancellationToken, LeaveBranch, Permissions, SessionSwitched, UserCommand,
    UserCommandError, UserCommandRun,
};
use tenterhook_engine::event::{BashResult, MessageEnd, UserBash};
use tenterhook_engine::{Effect, Role};

use crate::stage::Stage;

const TALK: &str = "turns: [{text: hello, repeat: true}]";

async fn run(agent: &mut Agent, line: &str) -> Result<UserCommandRun, UserCommandError> {
    let command = UserCommand::read(line).unwrap();
    agent.run_command(command, &CancellationToken::new()).await
}

fn texts(agent: &Agent) -> Vec<String> {
    let messages = agent.session().messages().into_iter();
    messages.map(|message| message.content).collect()
}

#[tokio::test]
async fn a_command_of_the_user_goes_into_the_conversation_unless_it_is_excluded() {
    let stage = Stage::empty();
    // Rules are for the model. They do not restrict the user.
    let permissions = Permissions::new().deny("shell".parse().unwrap());
    let config = AgentConfig {
        permissions,
        ..stage.config(TALK)
    };
    let mut agent = config.build(stage.engine.clone()).unwrap();
    let ran = run(&mut agent, "!echo out; echo err >&2; exit 3")
        .await
        .unwrap();
    let result = ran.result.unwrap();
    assert_eq!(
        (result.output.as_str(), result.exit_code),
        ("out\nerr\n", Some(3))
    );
    let secret = run(&mut agent, "!!echo secret").await.unwrap();
    assert_eq!(secret.result.unwrap().output, "secret\n");
    agent.prompt("go", &CancellationToken::new()).await;
    let told = texts(&agent);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("It printed:\n```\nout\nerr\n```\nIts exit status was 3."));
    assert_eq!(told[1..], ["go", "hello"]);
    let events = stage.all::<UserBash>();
    assert_eq!(events[1].command, "echo secret");
    let excluded: Vec<bool> = events
        .iter()
        .map(|event| event.exclude_from_context)
        .collect();
    assert_eq!(excluded, [false, true]);
    assert_eq!(events[0].cwd, stage.path());
    assert!(!stage.names().contains(&"pre_tool_use".to_owned()));
    let kinds: Vec<&str> = agent.session().entries().iter().map(|e| &*e.kind).collect();
    assert_eq!(kinds, ["user_bash", "user_bash", "message", "message"]);
}

#[tokio::test]
async fn a_command_is_no_word_of_the_user() {
    let stage = Stage::empty();
    let mut agent = stage.config(TALK).build(stage.engine.clone()).unwrap();
    run(&mut agent, "!echo out").await.unwrap();
    agent.prompt("go", &CancellationToken::new()).await;
    let cancel = CancellationToken::new();
    let moved = agent
        .go_to(&"1".into(), LeaveBranch::default(), &cancel)
        .await;
    assert_eq!(moved.unwrap(), SessionSwitched::default());
    assert_eq!(texts(&agent).len(), 1);
    assert_eq!(agent.session().messages()[0].role, Role::User);
}

// P28: a hook supplies the result, handles the command, or replaces it. A hook without an effect changes nothing.
#[tokio::test]
async fn hooks_deal_with_a_command_give_its_result_or_change_it() {
    let supplied = || BashResult {
        output: "from a hook".to_owned(),
        exit_code: Some(0),
        ..BashResult::default()
    };
    let line = "echo $((1 + 1))";
    for (effects, expected, ran) in [
        (vec![Effect::<UserBash>::none()], Some("2\n"), line),
        (vec![Effect::<UserBash>::handled()], None, line),
        (
            vec![Effect::none(), Effect::<UserBash>::supply(&supplied())],
            Some("from a hook"),
            line,
        ),
        (
            vec![Effect::none().replace_command("echo other".to_owned())],
            Some("other\n"),
            "echo other",
        ),
    ] {
        let stage = Stage::empty();
        for effect in effects {
            stage.engine.on(move |_: &UserBash| effect.clone());
        }
        let mut agent = stage.config(TALK).build(stage.engine.clone()).unwrap();
        let done = run(&mut agent, &format!("!{line}")).await.unwrap();
        let output = done.result.as_ref().map(|result| result.output.as_str());
        assert_eq!((output, done.line.as_str()), (expected, ran));
        assert_eq!(
            agent.session().entries().len(),
            usize::from(expected.is_some())
        );
    }
}

#[tokio::test]
async fn a_redactor_of_messages_sees_what_a_command_printed_before_it_is_stored() {
    let stage = Stage::empty();
    stage.engine.on(|event: &MessageEnd| {
        let mut message = event.message.clone();
        message.content = message.content.replace("canary", "***");
        Effect::<MessageEnd>::none().replace_message(message)
    });
    let mut agent = stage.config(TALK).build(stage.engine.clone()).unwrap();
    run(&mut agent, "!echo canary").await.unwrap();
    let stored = texts(&agent).join("\n");
    assert!(
        stored.contains("***") && !stored.contains("canary"),
        "{stored}"
    );
}

#[tokio::test]
async fn a_command_ends_with_its_cancellation_and_prints_no_more_than_is_kept() {
    let stage = Stage::empty();
    let mut agent = stage.config(TALK).build(stage.engine.clone()).unwrap();
    assert!(matches!(
        run(&mut agent, "! ").await,
        Err(UserCommandError::Empty)
    ));
    let cancel = CancellationToken::new();
    let fifo = stage.path().join("begun");
    let line = format!(
        "mkfifo {0}; echo begun; echo > {0}; sleep 600",
        fifo.display()
    );
    let command = UserCommand::read(&format!("!{line}")).unwrap();
    let waiting = tokio::task::spawn_blocking(move || {
        while !fifo.exists() {
            std::thread::yield_now();
        }
        std::fs::read(fifo).unwrap();
    });
    let stop = async {
        waiting.await.unwrap();
        cancel.cancel();
    };
    let (done, ()) = tokio::join!(agent.run_command(command, &cancel), stop);
    let result = done.unwrap().result.unwrap();
    assert_eq!(
        (result.output.as_str(), result.cancelled),
        ("begun\n", true)
    );
    let long = "!head -c 100000 /dev/zero | tr '\\0' x";
    let result = run(&mut agent, long).await.unwrap().result.unwrap();
    assert!(result.truncated && result.output.len() < 60_000);
    assert!(texts(&agent)[1].contains("bytes omitted"));
}
