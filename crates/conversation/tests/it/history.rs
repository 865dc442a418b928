//! What a client finds that reads a conversation later.

use tenterhook_channel::frame::Frame;

use crate::conversation_stage::{Stage, chat};

#[tokio::test]
async fn finished_tool_calls_are_part_of_the_history() {
    let script = r"
turns:
  - text: I look.
    tool_calls: [{name: write_file, arguments: {path: a.txt, content: LONG}}]
  - tool_calls: [{name: shell, arguments: {cmd: echo found}}]
  - text: Done.
";
    let stage = Stage::new(&script.replace("LONG", &"x".repeat(5_000)));
    stage.ask("look").await;
    let ann = chat("ann");
    let page = stage.parts.store.frames_before(&ann, u64::MAX, 100);
    let mut frames = page.await.unwrap().frames;
    frames.sort_by_key(|stored| stored.seq);
    let kinds: Vec<String> = frames
        .iter()
        .map(|stored| serde_json::to_value(&stored.frame).unwrap())
        .map(|frame| {
            frame["name"]
                .as_str()
                .or(frame["type"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect();
    let expected = ["said", "end", "write_file", "shell", "end", "done"];
    assert_eq!(kinds, expected);
    let Frame::Call { args, is_error, .. } = &frames[2].frame else {
        panic!("not a call");
    };
    assert!(!is_error);
    assert_eq!(args["path"], "a.txt");
    assert_eq!(args["content"].as_str().unwrap().len(), 300);
}
