//! The path of a user's input: hooks, then templates and skills, then the model.

use std::fs;
#[cfg(unix)]
use std::sync::Arc;

use tenterhook_agent::resource::{ResourcePlace, ResourceSource};
use tenterhook_agent::{
    Agent, AgentConfig, CancellationToken, Prompt, ResourcePlaces, RunEnd, SubmitOutcome,
};
use tenterhook_engine::event::{
    BeforeAgentStart, BeforeLlmCall, DiscoverReason, InputSource, QueueKind, ResourcesDiscover,
    UserFollowupSubmit, UserInput, UserPromptSubmit,
};
use tenterhook_engine::{Effect, Role};
#[cfg(unix)]
use tenterhook_engine::{EventKind, HookSpec, Image};
#[cfg(unix)]
use tenterhook_process::{Command, Program};
use tenterhook_runners::CommandHandler;
#[cfg(unix)]
use tenterhook_systems::native::Native;

use crate::stage::Stage;

const TALK: &str = "turns: [{text: hello, repeat: true}]";

/// Writes a template and a skill, and returns their places.
fn places(stage: &Stage) -> ResourcePlaces {
    let place = |name: &str| {
        vec![ResourcePlace {
            path: stage.path().join(name),
            source: ResourceSource::User,
        }]
    };
    let folder = stage.path().join("skills/pdf");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(stage.path().join("prompts")).unwrap();
    fs::write(stage.path().join("prompts/fix.md"), "Fix $1 with care.").unwrap();
    fs::write(
        folder.join("SKILL.md"),
        "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse the reader.\n",
    )
    .unwrap();
    ResourcePlaces {
        prompts: place("prompts"),
        skills: place("skills"),
    }
}

fn agent(stage: &Stage, script: &str) -> Agent {
    let config = AgentConfig {
        resources: places(stage),
        ..stage.config(script)
    };
    config.build(stage.engine.clone()).unwrap()
}

async fn say(agent: &mut Agent, text: &str, source: InputSource) -> RunEnd {
    let prompt = Prompt {
        source,
        ..Prompt::from(text)
    };
    agent.prompt(prompt, &CancellationToken::new()).await.end
}

#[cfg(unix)]
#[tokio::test]
async fn a_hook_that_removes_the_images_of_an_input_keeps_them_from_the_model() {
    let stage = Stage::empty();
    let answer = r#"echo '{"effect":{"rewrite":{"images":null}}}'"#;
    let command = Command::new(Program::shell(answer));
    let handler = CommandHandler::new(command, answer, Native::new());
    stage.engine.register(HookSpec::new(
        EventKind::UserInput,
        "blind",
        Arc::new(handler),
    ));
    let mut agent = agent(&stage, TALK);
    let prompt = Prompt {
        images: vec![Image::default()],
        ..Prompt::from("look")
    };
    agent.prompt(prompt, &CancellationToken::new()).await;
    let sent = &stage.only::<BeforeLlmCall>().messages;
    assert!(
        sent.iter().any(|message| message.content == "look"),
        "{sent:?}"
    );
    assert!(
        sent.iter().all(|message| message.images.is_empty()),
        "{sent:?}"
    );
}

// P1 to P6 in the agent: templates are looked up in the input after changes by hooks.
#[tokio::test]
async fn an_input_passes_its_hooks_before_templates_are_filled() {
    for (from, source, expected) in [
        ("/fix it", InputSource::Interactive, "Fix it with care."),
        ("/fix it", InputSource::Rpc, "Fix it with care."),
        ("repair it", InputSource::Interactive, "Fix it with care."),
        ("/fix it", InputSource::Extension, "/fix it"),
        ("/mend it", InputSource::Interactive, "/mend it"),
        ("what is /fix", InputSource::Interactive, "what is /fix"),
    ] {
        let stage = Stage::empty();
        stage.engine.on(
            |event: &UserInput| match event.text.strip_prefix("repair ") {
                Some(rest) => Effect::<UserInput>::none().replace_text(format!("/fix {rest}")),
                None => Effect::none(),
            },
        );
        let mut agent = agent(&stage, TALK);
        assert_eq!(say(&mut agent, from, source).await, RunEnd::Completed);
        assert_eq!(stage.only::<UserInput>().source, source);
        assert_eq!(stage.only::<UserPromptSubmit>().prompt, expected, "{from}");
        assert_eq!(stage.only::<BeforeAgentStart>().prompt, expected);
        let messages = agent.session().messages();
        assert_eq!(messages[0].content, expected);
    }
}

#[tokio::test]
async fn an_input_that_a_hook_deals_with_fills_no_template() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &UserInput| Effect::<UserInput>::handled());
    let mut agent = agent(&stage, TALK);
    let end = say(&mut agent, "/fix it", InputSource::Interactive).await;
    assert_eq!(end, RunEnd::Handled);
    assert!(stage.all::<UserPromptSubmit>().is_empty());
    assert!(agent.session().messages().is_empty());
}

#[tokio::test]
async fn the_model_is_told_of_skills_if_it_can_read_them_and_gets_one_by_its_name() {
    for (tools, is_told) in [("read_file", true), ("shell", false)] {
        let stage = Stage::empty();
        let config = AgentConfig {
            resources: places(&stage),
            ..stage.config(TALK)
        };
        let config = AgentConfig {
            tools: Some(vec![tools.to_owned()]),
            instruction: "Be brief.".to_owned(),
            ..config
        };
        let mut agent = config.build(stage.engine.clone()).unwrap();
        say(&mut agent, "/skill:pdf a.pdf", InputSource::Interactive).await;
        let asked = stage.only::<BeforeLlmCall>().messages;
        assert_eq!(asked[0].role, Role::System);
        assert!(asked[0].content.starts_with("Be brief."));
        let skill = "<description>Reads PDF files.</description>";
        assert_eq!(asked[0].content.contains(skill), is_told, "{tools}");
        let prompt = stage.only::<UserPromptSubmit>().prompt;
        assert!(
            prompt.contains("Use the reader.\n</skill>\n\nUser: a.pdf"),
            "{prompt}"
        );
    }
}

#[tokio::test]
async fn hooks_say_where_more_templates_and_skills_are() {
    let stage = Stage::empty();
    let folder = stage.path().join("kit");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("plan.md"), "Plan $@.").unwrap();
    fs::write(folder.join("bad name.md"), "x").unwrap();
    stage.engine.on(|_: &ResourcesDiscover| {
        Effect::none()
            .prompt_path("kit".into())
            .skill_path("gone".into())
    });
    let mut agent = agent(&stage, TALK);
    assert!(agent.resources().templates().is_empty());
    say(&mut agent, "/plan it all", InputSource::Interactive).await;
    assert_eq!(stage.only::<UserPromptSubmit>().prompt, "Plan it all.");
    assert_eq!(
        stage.only::<ResourcesDiscover>().reason,
        DiscoverReason::Startup
    );
    assert_eq!(stage.names()[..2], ["session_start", "resources_discover"]);
    assert_eq!(agent.resources().templates().len(), 2);
    let told = stage.field("notification", "message");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("bad name.md") && told[1].contains("gone"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_session_that_takes_the_place_of_another_looks_anew() {
    let stage = Stage::empty();
    let mut agent = agent(&stage, TALK);
    agent
        .start_session(tenterhook_engine::event::SessionSource::Startup)
        .await;
    fs::write(stage.path().join("prompts/new.md"), "new").unwrap();
    assert_eq!(agent.resources().templates().len(), 1);
    agent.new_session(&CancellationToken::new()).await.unwrap();
    assert_eq!(agent.resources().templates().len(), 2);
}

#[tokio::test]
async fn what_is_said_to_an_agent_at_work_goes_the_same_way_and_waits() {
    for (text, source, expected, queued) in [
        (
            "/fix it",
            InputSource::Rpc,
            SubmitOutcome::Queued,
            Some("Fix it with care."),
        ),
        (
            "/fix it",
            InputSource::Extension,
            SubmitOutcome::Queued,
            Some("/fix it"),
        ),
        ("mine", InputSource::Rpc, SubmitOutcome::Handled, None),
        (
            "never",
            InputSource::Rpc,
            SubmitOutcome::Refused {
                reason: "not that".to_owned(),
            },
            None,
        ),
    ] {
        let stage = Stage::empty();
        stage
            .engine
            .on(|event: &UserInput| match event.text.as_str() {
                "mine" => Effect::<UserInput>::handled(),
                "never" => Effect::<UserInput>::block("not that"),
                _ => Effect::none(),
            });
        let mut agent = agent(&stage, TALK);
        agent
            .start_session(tenterhook_engine::event::SessionSource::Startup)
            .await;
        let handle = agent.handle();
        let done = handle.submit(text, source, QueueKind::FollowUp).await;
        assert_eq!(done, Ok(expected));
        say(&mut agent, "go", InputSource::Interactive).await;
        let submitted = stage.all::<UserFollowupSubmit>().pop();
        assert_eq!(
            submitted.as_ref().map(|event| event.prompt.as_str()),
            queued
        );
    }
}
