//! Answers that must not count as consent, on every transport.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tenterhook_engine::{
    AsyncHandler, Decision, Dialect, Dispatched, EventKind, HookSpec, OnError, Origin,
};
use tenterhook_process::{Command, Program};
use tenterhook_protocol::parse_event;
use tenterhook_runners::CommandHandler;
use tenterhook_runners::http::{Headers, HttpHandler, Target};
use tenterhook_runners::model::Shape;
use tenterhook_runners::worker::{Extension, NoHost, Script, Worker, WorkerHandler};
use tenterhook_systems::docker_agent::DockerAgent;
use tenterhook_systems::kodelet::Kodelet;
use tenterhook_systems::kodelet::extension::KodeletExtension;
use tenterhook_systems::morphix::Morphix;
use tenterhook_systems::operator::Operator;
use tenterhook_systems::pi::Pi;

use crate::extension::protocol;
use crate::model::{Client, make};
use crate::server::{Script as Play, serve};
use crate::{engine, native, on_error, spec};

/// A worker or an extension of kodelet that answers each event with the bytes of the file `answer`.
const SERVER: &str = r"
import json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
frames = sys.argv[1:] == ['frames']
def send(number, result):
    body = b'{\x22jsonrpc\x22:\x222.0\x22,\x22id\x22:%d,\x22result\x22:%s}' % (number, result)
    head, tail = (b'Content-Length: %d\r\n\r\n' % len(body), b'') if frames else (b'', b'\n')
    sys.stdout.buffer.write(head + body + tail)
    sys.stdout.buffer.flush()
def hear():
    if not frames:
        return sys.stdin.buffer.readline()
    length = 0
    for line in iter(sys.stdin.buffer.readline, b''):
        if not line.strip():
            return sys.stdin.buffer.read(length)
        length = int(line.partition(b':')[2])
    return b''
KNOWN = {
    'initialize': {'protocol_version': 1},
    'script/load': {'hooks': [{'name': 'guard', 'event': 'pre_tool_use'}]},
    'extension.initialize': {'subscriptions': [{'event': 'tool.call'}]},
    'shutdown': {},
}
while True:
    text = hear()
    if not text:
        break
    message = json.loads(text)
    if message.get('id') is None:
        continue
    if message['method'] in KNOWN:
        send(message['id'], json.dumps(KNOWN[message['method']]).encode())
    else:
        with open(os.path.join(folder, 'answer'), 'rb') as file:
            send(message['id'], file.read())
";

/// How a hook is reached.
#[derive(Debug, Clone, Copy)]
enum Transport {
    Native,
    AgentFile,
    Preempt,
    Kodelet,
    Http,
    Model,
    NativeWorker,
    Pi,
    Operator,
    Morphix,
    Extension,
}

impl Transport {
    const ALL: [Self; 11] = [
        Self::Native,
        Self::AgentFile,
        Self::Preempt,
        Self::Kodelet,
        Self::Http,
        Self::Model,
        Self::NativeWorker,
        Self::Pi,
        Self::Operator,
        Self::Morphix,
        Self::Extension,
    ];

    /// Returns answers that are failures.
    fn bad_answers(self) -> &'static [&'static str] {
        match self {
            Self::Native | Self::AgentFile | Self::Preempt | Self::Http | Self::NativeWorker => &[
                r#"{"decision":"deny","decision":"allow"}"#,
                r#"{"decision":"allow","decision":"deny"}"#,
                r#"{"hook_specific_output":{"permission_decision":"deny","permission_decision":"allow"}}"#,
                r#"{"updated_input":{"cmd":"ls","cmd":"rm -rf /"}}"#,
                r#"{"decision":true}"#,
                r#"{"decision":["deny"]}"#,
                r#"{"decision":"Deny"}"#,
                r#"{"continue":"false"}"#,
                r#"{"continue":0}"#,
            ],
            Self::Kodelet => &[
                r#"{"blocked":true,"blocked":false}"#,
                r#"{"blocked":"yes"}"#,
                r#"{"blocked":1}"#,
                r#"{"input":{"cmd":"ls","cmd":"rm -rf /"}}"#,
                r#"["blocked"]"#,
            ],
            Self::Model => &[
                r#"{"decision":"deny","decision":"allow"}"#,
                r#"{"decision":"allow","reason":"x","reason":"y"}"#,
                r#"{"decision":true}"#,
                r#"{"decision":["allow"]}"#,
                r#"{"decision":"allow","reason":1}"#,
            ],
            Self::Pi => &[
                r#"{"result":{"block":true,"block":false}}"#,
                r#"{"result":{"block":true},"result":null}"#,
                r#"{"result":{"block":0}}"#,
                r#"{"result":{"block":""}}"#,
                r#"{"changed":{"input":{"cmd":"ls","cmd":"rm -rf /"}}}"#,
                r#"[{"block":true}]"#,
            ],
            Self::Operator => &[
                r#"{"class":"ToolCallEventResult","fields":{"block":true,"block":false}}"#,
                r#"{"class":"ToolCallEventResult","fields":{"block":true},"fields":{}}"#,
                r#"{"class":"ToolCallEventResult","fields":{"block":0}}"#,
                r#"{"class":"ToolCallEventResult","fields":{"block":[]}}"#,
                r#"["ToolCallEventResult",{}]"#,
            ],
            Self::Morphix => &[
                r#"{"parameters":{"cmd":"ls","cmd":"rm -rf /"}}"#,
                r#"{"parameters":[]}"#,
                r#"[{"cmd":"rm -rf /"}]"#,
            ],
            Self::Extension => &[
                r#"{"block":{"reason":"no"},"block":null}"#,
                r#"{"block":"no"}"#,
                r#"{"block":true}"#,
                r#"{"input":{"cmd":"ls","cmd":"rm -rf /"}}"#,
            ],
        }
    }

    /// Returns a refusal, if hooks of this kind can refuse.
    fn refusal(self) -> Option<&'static str> {
        Some(match self {
            Self::Kodelet => r#"{"blocked":true}"#,
            Self::Pi => r#"{"result":{"block":true}}"#,
            Self::Operator => r#"{"class":"ToolCallEventResult","fields":{"block":true}}"#,
            Self::Extension => r#"{"block":{"reason":"no"}}"#,
            Self::Morphix => return None,
            Self::Native
            | Self::AgentFile
            | Self::Preempt
            | Self::Http
            | Self::Model
            | Self::NativeWorker => r#"{"decision":"deny"}"#,
        })
    }

    fn dialect(self) -> Arc<dyn Dialect> {
        match self {
            Self::AgentFile => DockerAgent::agent_file(),
            Self::Preempt => DockerAgent::preempt(),
            Self::Kodelet => Kodelet::new(),
            Self::Pi => Pi::event("tool_call").unwrap().dialect(),
            Self::Operator => Operator::event("tool_call").unwrap().dialect(),
            Self::Morphix => Morphix::new(),
            Self::Extension => KodeletExtension::new(),
            Self::Native | Self::Http | Self::Model | Self::NativeWorker => native(),
        }
    }

    /// Makes a handler that answers with `answer`.
    async fn handler(self, dir: &Path, answer: &str) -> Arc<dyn AsyncHandler> {
        fs::write(dir.join("answer"), answer).unwrap();
        let server = dir.join("server.py");
        fs::write(&server, SERVER).unwrap();
        let python = |args: &[&str]| {
            let argv = ["python3", server.to_str().unwrap()];
            Command::new(Program::exec(argv.iter().chain(args)))
        };
        let dialect = self.dialect();
        match self {
            Self::Native | Self::AgentFile | Self::Preempt | Self::Kodelet => {
                let line = format!("cat '{}'", dir.join("answer").display());
                let command = Command::new(Program::shell(&line));
                Arc::new(CommandHandler::new(command, "cat", dialect))
            }
            Self::Http => {
                let service = serve(Play::json(answer)).await;
                let target = Target::parse(&service.url(), true).unwrap();
                Arc::new(HttpHandler::new(target, Headers::default(), dialect).unwrap())
            }
            Self::Model => {
                let client = Some(Client::new([answer]));
                Arc::new(make("{{ .ToolName }}", Shape::Decision, "pre_tool_use", client).unwrap())
            }
            Self::NativeWorker | Self::Pi | Self::Operator | Self::Morphix => {
                let worker = Worker::new("server", python(&[]));
                let script = Script {
                    path: server.clone(),
                    api: "tenterhook",
                    approved: None,
                };
                let (number, _) = worker.load(&script).await.unwrap();
                Arc::new(WorkerHandler::new(worker, (number, 0), dialect, "server"))
            }
            Self::Extension => {
                let command = python(&["frames"]);
                let extension = Extension::new(
                    "server",
                    command,
                    protocol(),
                    (dir, &dir.join("data")),
                    Arc::new(NoHost),
                );
                Arc::new(WorkerHandler::of_extension(extension, dialect, "server"))
            }
        }
    }

    /// Sends a call through a gate that answers with `answer`.
    async fn judge(self, answer: &str) -> Dispatched {
        let dir = tempfile::tempdir().unwrap();
        let handler = self.handler(dir.path(), answer).await;
        let guard: HookSpec = on_error(
            spec(EventKind::PreToolUse, "guard", handler),
            OnError::Block,
        );
        let payload =
            json!({"tool_name": "shell", "tool_use_id": "c1", "tool_input": {"cmd": "ls"}});
        let event = parse_event(&EventKind::PreToolUse.into(), payload).unwrap();
        let origin = Origin::new("", dir.path().to_owned());
        engine([guard]).dispatcher(origin).dispatch_any(event).await
    }
}

#[tokio::test]
async fn repeated_keys_and_wrong_types_are_failures_on_every_transport() {
    for transport in Transport::ALL {
        for answer in transport.bad_answers() {
            let judged = transport.judge(answer).await;
            let failures = &judged.outcome.failures;
            assert_eq!(failures.len(), 1, "{transport:?} {answer}");
            assert!(
                matches!(judged.decision(), Decision::Stop { .. }),
                "{transport:?} {answer}"
            );
        }
    }
}

#[tokio::test]
async fn a_deny_behind_a_megabyte_of_white_space_stops_on_every_transport() {
    for transport in Transport::ALL {
        let Some(refusal) = transport.refusal() else {
            continue;
        };
        for (before, after) in [(1 << 20, 0), (3 << 20, 0), (600 << 10, 600 << 10)] {
            let answer = format!("{}{refusal}{}", " ".repeat(before), "\n ".repeat(after / 2));
            // A line break ends a worker's message, so the white space of the answer has none.
            let answer = answer.replace('\n', " ");
            let judged = transport.judge(&answer).await;
            assert!(
                matches!(judged.decision(), Decision::Stop { .. }),
                "{transport:?} {before} {after}"
            );
        }
    }
}
