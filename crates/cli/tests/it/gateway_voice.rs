//! Voice in a running gateway. Shell scripts stand in for engines and converters, except in the tests that `.ci/voice`
//! runs.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fake_telegram::{FakeTelegram, SentMessage, TOKEN_VARIABLE};
use crate::gateway_hooks::{SETTINGS, gateway, of_type, pipe_messages, prompts, with_operator};
use crate::speech_server::{KEY_VARIABLE, SpeechServer, run};
use crate::stage::{Test, eventually};

const STDIO: &str = "--listen off --stdio --session-dir sessions";

/// Returns a WAV file with this many seconds of silence.
fn silence(seconds: u32) -> Vec<u8> {
    let size = seconds * 32_000;
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + size).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend(16_000_u32.to_le_bytes());
    wav.extend(32_000_u32.to_le_bytes());
    wav.extend(b"\x02\0\x10\0data");
    wav.extend(size.to_le_bytes());
    wav.resize(44 + size as usize, 0);
    wav
}

/// A message with a recording.
fn spoken() -> Value {
    json!({"parts": [{"media_type": "audio/wav", "data": STANDARD.encode(silence(2)), "name": "voice.wav"}]})
}

/// Settings whose engines are the scripts `listen` and `speak` of the working directory. `more` are further settings of
/// `tts` and further lines.
fn settings(test: &Test, more: (&str, &str)) -> String {
    let work = test.work();
    let work = work.display();
    format!(
        "stt: {{ engine: command, argv: [sh, {work}/listen, '{{input}}'] }}\n\
         tts: {{ engine: command, argv: [sh, {work}/speak, '{{output}}'], {} }}\n{}",
        more.0, more.1
    )
}

/// Adds engines that hear the same words in each recording, and note what they say.
fn with_engines(test: Test, more: (&str, &str)) -> Test {
    let (settings, work) = (settings(&test, more), test.work());
    let work = work.display();
    fs::write(test.work().join("silence.wav"), silence(1)).unwrap();
    test.file(SETTINGS, &settings)
        .file("listen", "test -s \"$1\" && echo turn on the lights")
        .file(
            "speak",
            &format!("cat >> {work}/spoken; echo >> {work}/spoken; cp {work}/silence.wav \"$1\""),
        )
}

/// Returns the types of frames after the first `start`, without chunks.
fn words(frames: &[Value]) -> Vec<&str> {
    let words = frames.iter().map(|frame| frame["type"].as_str().unwrap());
    words
        .skip_while(|word| *word != "start")
        .filter(|word| *word != "chunk")
        .collect()
}

// G85, G87
#[test]
fn a_spoken_question_gets_a_spoken_answer_and_a_typed_one_does_not() {
    let call = with_engines(gateway(STDIO), ("", ""));
    let (frames, ran) = pipe_messages(call, &[spoken(), json!({"text": "typed"})]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let heard = prompts(&ran);
    assert_eq!(heard, ["\"turn on the lights\"", "\"typed\""]);
    assert_eq!(ran.file("spoken"), "Hello from the agent.\n");
    let said = of_type(&frames, "said")[0];
    assert_eq!(said["text"], "turn on the lights");
    assert_eq!(
        (&said["is_transcript"], &said["media"][0]["kind"]),
        (&json!(true), &json!("audio"))
    );
    let expected = [
        "start", "end", "message", "done", "said", "start", "end", "done",
    ];
    let mut words = words(&frames);
    words.retain(|word| *word != "accepted");
    assert_eq!(words, expected);
    let media = &of_type(&frames, "message")[0]["media"];
    assert_eq!(media["kind"], "audio");
    assert_eq!(media["media_type"], "audio/x-wav");
}

// G29
#[test]
fn what_is_spoken_is_what_the_hooks_let_out() {
    let hook = "\
from tenterhook import on, patch

@on('message_deliver')
def polite(event):
    return patch(text=event.text.replace('agent', 'butler'))
";
    let call = with_engines(gateway(STDIO), ("", "")).file("../config/hooks/polite.py", hook);
    let (frames, ran) = pipe_messages(call, &[spoken()]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(of_type(&frames, "end")[0]["text"], "Hello from the butler.");
    assert_eq!(ran.file("spoken"), "Hello from the butler.\n");
}

// G89
#[test]
fn a_text_is_answered_although_the_recording_with_it_is_not_understood() {
    let call = with_engines(gateway(STDIO), ("", "")).file("listen", "echo no ears >&2; exit 1");
    let mut message = spoken();
    message["text"] = "read this".into();
    let (frames, ran) = pipe_messages(call, &[message, spoken()]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(
        prompts(&ran),
        ["\"read this\\n[voice message, 2 s: not understood]\""]
    );
    let errors: Vec<(&str, &str)> = of_type(&frames, "error")
        .iter()
        .map(|error| {
            (
                error["code"].as_str().unwrap(),
                error["text"].as_str().unwrap(),
            )
        })
        .collect();
    let problem = "I could not understand the voice message (2 s).";
    let refusal = format!("{problem} Please try again or write.");
    assert_eq!(errors, [("notice", problem), ("rejected", &refusal)]);
    // The cause is for the operator of the gateway.
    assert!(ran.stderr.contains("no ears"), "{}", ran.stderr);
}

// G90
#[test]
fn an_answer_that_cannot_be_spoken_is_written() {
    for (speaks, expected) in [(true, ""), (false, "Hello from the agent.")] {
        let mut call = with_engines(gateway(STDIO), ("text: voice_only", ""));
        if !speaks {
            call = call.file("speak", "exit 1");
        }
        let (frames, ran) = pipe_messages(call, &[spoken()]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert_eq!(of_type(&frames, "end")[0]["text"], expected);
        assert_eq!(of_type(&frames, "message").len(), usize::from(speaks));
        assert!(of_type(&frames, "chunk").is_empty());
    }
}

// G86
#[test]
fn a_channel_can_turn_voice_off_or_on() {
    for (keys, heard, spoken_answers) in [
        ("stt_enabled: false", "[voice message]", 1),
        ("tts_enabled: false", "turn on the lights", 0),
        ("tts_enabled: true", "turn on the lights", 2),
    ] {
        let channel = format!("channels: {{ stdio: {{ {keys} }} }}\n");
        let call = with_engines(gateway(STDIO), ("", &channel));
        let (frames, ran) = pipe_messages(call, &[spoken(), json!({"text": "typed"})]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert_eq!(prompts(&ran)[0], format!("\"{heard}\""), "{keys}");
        assert_eq!(of_type(&frames, "message").len(), spoken_answers, "{keys}");
    }
}

const OPERATOR_VOICE: &str = "\
from operator_use.bus import AudioPart, TextPart
from operator_use.hooks.types import MessageReceiveResult, MessageSendResult

async def listen(event):
    parts = []
    for part in event.parts:
        if isinstance(part, AudioPart):
            with open(part.audio, 'rb') as recording:
                note(f'{len(recording.read())} bytes')
            part = TextPart(content='turn on the lights')
        parts.append(part)
    return MessageReceiveResult(action='transform', parts=parts)

async def speak(event):
    note(f'{event.is_voice} {event.response_text}')
    if event.is_voice:
        return MessageSendResult(parts=[AudioPart(audio='silence.wav')])

hooks = [('message:receive', listen), ('message:send', speak)]
";

// G95
#[test]
fn hooks_of_operator_do_what_the_built_ins_do() {
    let call = with_operator(gateway(STDIO), OPERATOR_VOICE);
    fs::write(call.work().join("silence.wav"), silence(1)).unwrap();
    let (frames, ran) = pipe_messages(call, &[spoken()]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("log"), "64044 bytes\nTrue Hello from the agent.\n");
    assert_eq!(prompts(&ran), ["\"turn on the lights\""]);
    let said = of_type(&frames, "said")[0];
    assert_eq!(
        (&said["text"], &said["is_transcript"]),
        (&json!("turn on the lights"), &json!(true))
    );
    assert_eq!(of_type(&frames, "message")[0]["media"]["kind"], "audio");
}

#[test]
fn a_gateway_whose_engine_cannot_work_does_not_start() {
    let call = gateway("--listen off --stdio").file(
        SETTINGS,
        "stt: { engine: command, argv: [no-such-program-anywhere] }\n",
    );
    let ran = call.run();
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    for part in [
        "the engine of `stt` cannot work",
        "no-such-program-anywhere",
        "set it to `off`",
    ] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

#[test]
fn the_check_and_the_doctor_say_what_is_missing_for_voice() {
    let telegram = FakeTelegram::start();
    let call = with_engines(Test::new(), ("convert: off", &bot(&telegram)));
    let text = fs::read_to_string(call.work().join(SETTINGS)).unwrap();
    let text = text.replacen("'{input}'] }", "'{input}'], convert: off }", 1);
    let call = call.file(SETTINGS, &text);
    let checked = call
        .variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1)
        .args(["gateway", "check", "--no-journal"])
        .run();
    assert_eq!(checked.status, 0, "{}", checked.stderr);
    let missing = [
        "cannot be understood, because there is no converter",
        "channel `tg`: spoken answers are sent as WAV files",
    ];
    for part in missing {
        assert!(checked.stderr.contains(part), "{}", checked.stderr);
    }
    assert!(
        checked
            .stdout
            .contains("speech to text by the program `sh`"),
        "{}",
        checked.stdout
    );
    let doctor = checked
        .again(["gateway", "doctor", "--no-journal", "--json"])
        .variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1)
        .run();
    let report = doctor.json();
    let checks = report["checks"].as_array().unwrap().iter();
    let warnings: Vec<&Value> = checks
        .filter(|check| check["check"] == "voice" && check["level"] == "warning")
        .collect();
    assert_eq!(warnings.len(), missing.len(), "{report}");
}

/// Settings of a bot whose owner is the user 42.
fn bot(telegram: &FakeTelegram) -> String {
    telegram.settings("dm: allow, owners: [\"42\"]")
}

/// Sends a voice message to the bot. Returns what the bot sends, until something with a file.
fn answer_to_voice(test: Test, telegram: &FakeTelegram, recording: &[u8]) -> Vec<SentMessage> {
    let running = test.start();
    telegram.await_poll(0);
    telegram.add_voice(1, 42, recording);
    let sent = eventually(|| {
        let sent = telegram.sent();
        sent.iter()
            .any(|sent| !sent.form.is_empty())
            .then_some(sent)
    });
    running.interrupt();
    assert_eq!(running.finish().status, 0);
    sent
}

const OGG: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead";

// G92, G93
#[test]
fn a_bot_sends_voice_if_there_is_a_converter_and_else_a_file_with_a_notice() {
    for has_converter in [true, false] {
        let telegram = FakeTelegram::start();
        let call = gateway("--listen off");
        let work = call.work();
        fs::write(work.join("note.ogg"), OGG).unwrap();
        // Recordings become silence, and speech becomes the same voice note.
        let script = "case \"$2\" in *.wav) cp \"$(dirname \"$0\")/silence.wav\" \"$2\";; *) cp \"$(dirname \"$0\")/note.ogg\" \"$2\";; esac";
        let convert = format!(
            "convert: [sh, {}/convert, '{{input}}', '{{output}}']",
            work.display()
        );
        let more = if has_converter {
            convert.as_str()
        } else {
            "convert: off"
        };
        let call = with_engines(call, (more, &bot(&telegram))).file("convert", script);
        let text = fs::read_to_string(call.work().join(SETTINGS)).unwrap();
        let text = text.replacen("'{input}'] }", &format!("'{{input}}'], {convert} }}"), 1);
        let sent = answer_to_voice(call.file(SETTINGS, &text), &telegram, OGG);
        assert_eq!(sent[0].text, "Hello from the agent.");
        let last = sent.last().unwrap();
        if has_converter {
            assert_eq!((&*last.method, &*last.text), ("sendVoice", ""));
            assert!(last.form.windows(OGG.len()).any(|bytes| bytes == OGG));
        } else {
            assert_eq!(last.method, "sendDocument");
            assert!(
                last.text
                    .contains("no program is installed that converts it"),
                "{}",
                last.text
            );
        }
    }
}

#[test]
fn an_answer_is_not_spoken_again_after_a_crash() {
    let telegram = FakeTelegram::start();
    let call = with_engines(gateway("--listen off"), ("convert: off", &bot(&telegram)));
    let note = call.work().join("spoken");
    let call = call.file(
        "speak",
        &format!("cat >> {0}; echo >> {0}; sleep 600", note.display()),
    );
    let running = call.start();
    telegram.await_poll(0);
    telegram.add_voice(1, 42, &silence(1));
    telegram.await_texts(42, 1);
    assert_eq!(running.line_of("spoken"), "Hello from the agent.");
    running.signal("KILL");
    let ran = running.finish();
    let polls = telegram.polls();
    let again = ran.again(["gateway", "run", "--no-journal", "--listen", "off"]);
    let again = again.variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1);
    let running = again
        .script("turns: [{text: Written., repeat: true}]")
        .start();
    telegram.await_poll(polls);
    telegram.add_text(2, 42, "typed");
    eventually(|| {
        telegram
            .texts(42)
            .iter()
            .any(|text| text == "Written.")
            .then_some(())
    });
    assert_eq!(fs::read_to_string(&note).unwrap().lines().count(), 1);
    assert!(telegram.sent().iter().all(|sent| sent.form.is_empty()));
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

/// A program with the options of `whisper-cli`. It understands `Turn on the lights.` in each WAV file.
const WHISPER_CLI: &str = r#"#!/bin/sh
language=en
while [ $# -gt 0 ]; do
  case $1 in
    -nt|--no-timestamps) is_plain=1 ;;
    -np|--no-prints) is_quiet=1 ;;
    -m|--model) model=$2; shift ;;
    -l|--language) language=$2; shift ;;
    -f|--file) file=$2; shift ;;
    *) echo "error: unknown argument: $1" >&2; exit 1 ;;
  esac
  shift
done
[ -f "$model" ] || { echo "error: failed to initialize whisper context" >&2; exit 3; }
[ "$(head -c 4 "$file")" = RIFF ] || { echo "error: failed to read audio file" >&2; exit 10; }
[ -n "$is_quiet" ] || echo "whisper_init_from_file_with_params_no_state: loading model"
echo
[ -n "$is_plain" ] || printf '[00:00:00.000 --> 00:00:02.000]  '
echo " Turn on the lights. ($language)"
"#;

/// A program with the options of `piper`. It reads lines from standard input and speaks silence.
const PIPER: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    -m|--model) model=$2; shift ;;
    -f|--output-file|--output_file) file=$2; shift ;;
    --length-scale|--length_scale) scale=$2; shift ;;
    *) echo "unexpected text: $1" >&2; exit 1 ;;
  esac
  shift
done
[ -f "$model" ] || { echo "Unable to find voice: $model" >&2; exit 1; }
{ echo "$scale"; cat; echo; } >> "$WORK/spoken"
cp "$WORK/silence.wav" "$file"
"#;

// G96
#[test]
fn the_presets_run_whisper_cli_and_piper_with_their_documented_options() {
    let settings = "stt: { engine: command, preset: whisper-cli, model: base.bin, language: de }\n\
                    tts: { engine: command, preset: piper, model: amy.onnx, speed: 2 }\n";
    let call = gateway(STDIO)
        .file(SETTINGS, settings)
        .file("../config/base.bin", "model")
        .file("../config/amy.onnx", "voice")
        .executable("programs/whisper-cli", WHISPER_CLI)
        .executable(
            "programs/piper",
            // The environment of engines has only common variables.
            "#!/bin/sh\nWORK=${0%/programs/piper} exec \"${0%/*}/piper-with-folder\" \"$@\"\n",
        )
        .executable("programs/piper-with-folder", PIPER);
    let work = call.work();
    fs::write(work.join("silence.wav"), silence(1)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let programs = format!("{}:{path}", work.join("programs").display());
    let (frames, ran) = pipe_messages(call.variable("PATH", &programs), &[spoken()]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(prompts(&ran), ["\"Turn on the lights. (de)\""]);
    assert_eq!(ran.file("spoken"), "0.500\nHello from the agent.\n");
    let media = &of_type(&frames, "message")[0]["media"];
    assert_eq!(media["kind"], "audio");
}

/// Returns whether programs are installed. If not, reports the test as skipped.
#[expect(clippy::print_stdout, reason = "`.ci/voice` counts these lines")]
fn are_installed(programs: &[&str]) -> bool {
    let is_missing = |program: &&&str| {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\"", program])
            .output();
        !found.unwrap().status.success()
    };
    let missing: Vec<&str> = programs.iter().filter(is_missing).copied().collect();
    if !missing.is_empty() {
        println!("skipped: no {}", missing.join(", "));
    }
    missing.is_empty()
}

const GRAMMAR: &str = "#JSGF V1.0;\ngrammar home;\npublic <command> = turn on the lights in the kitchen | please open the door;\n";

// G92, G96
#[test]
#[ignore = "needs installed programs; `.ci/voice` runs it"]
fn a_real_voice_note_is_understood_and_answered_with_one() {
    if !are_installed(&[
        "espeak-ng",
        "pocketsphinx_continuous",
        "ffmpeg",
        "opusenc",
        "opusdec",
    ]) {
        return;
    }
    let telegram = FakeTelegram::start();
    let settings = format!(
        "stt: {{ engine: command, preset: pocketsphinx, grammar: home.jsgf }}\n\
         tts: {{ engine: command, preset: espeak-ng, voice: en-us }}\n{}",
        bot(&telegram)
    );
    let call = gateway("--listen off --session-dir sessions")
        .file(SETTINGS, &settings)
        .file("../config/home.jsgf", GRAMMAR);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = "turn on the lights in the kitchen";
    run(
        folder,
        &[
            "espeak-ng",
            "-v",
            "en-us",
            "-s",
            "140",
            "-w",
            "speech.wav",
            words,
        ],
    );
    run(folder, &["opusenc", "--quiet", "speech.wav", "note.ogg"]);
    let note = fs::read(folder.join("note.ogg")).unwrap();
    let sessions = call.work().join("sessions");
    let running = call.start();
    telegram.await_poll(0);
    telegram.add_voice(1, 42, &note);
    let sent = eventually(|| {
        let sent = telegram.sent();
        sent.iter()
            .any(|sent| !sent.form.is_empty())
            .then_some(sent)
    });
    let heard = fs::read_dir(sessions)
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    assert!(heard.collect::<String>().contains(words));
    running.interrupt();
    assert_eq!(running.finish().status, 0);
    let last = sent.last().unwrap();
    assert_eq!(last.method, "sendVoice");
    let start = last
        .form
        .windows(4)
        .position(|bytes| bytes == b"OggS")
        .unwrap();
    fs::write(folder.join("answer.ogg"), &last.form[start..]).unwrap();
    run(
        folder,
        &[
            "opusdec",
            "--quiet",
            "--rate",
            "16000",
            "answer.ogg",
            "answer.wav",
        ],
    );
    let wav = fs::read(folder.join("answer.wav")).unwrap();
    assert!(wav.len() > 16_000, "{} bytes", wav.len());
    assert!(wav[44..].iter().any(|byte| *byte != 0));
}

/// Returns a message with a recording in which `espeak-ng` speaks.
fn spoken_by_program(words: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let speak = [
        "espeak-ng",
        "-v",
        "en-us",
        "-s",
        "140",
        "-w",
        "speech.wav",
        words,
    ];
    run(folder.path(), &speak);
    let speech = fs::read(folder.path().join("speech.wav")).unwrap();
    json!({"parts": [{"media_type": "audio/wav", "data": STANDARD.encode(speech), "name": "voice.wav"}]})
}

// G96
#[test]
#[ignore = "needs installed programs; `.ci/voice` runs it"]
fn a_service_with_the_interface_of_openai_hears_and_speaks() {
    if !are_installed(&["espeak-ng", "pocketsphinx_continuous", "ffmpeg"]) {
        return;
    }
    let server = SpeechServer::start(GRAMMAR);
    let service = format!(
        "engine: openai, base_url: '{}', key_env: {}",
        server.url, KEY_VARIABLE.0
    );
    let settings = format!("stt: {{ {service} }}\ntts: {{ {service} }}\n");
    let words = "turn on the lights in the kitchen";
    let message = spoken_by_program(words);
    let call = gateway(STDIO)
        .file(SETTINGS, &settings)
        .variable(KEY_VARIABLE.0, KEY_VARIABLE.1);
    let (frames, ran) = pipe_messages(call, &[message]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(prompts(&ran), [format!("\"{words}\"")]);
    assert_eq!(server.log(), ["audio.wav", "Hello from the agent."]);
    let media = &of_type(&frames, "message")[0]["media"];
    assert_eq!(media["kind"], "audio");
    assert!(media["size"].as_u64().unwrap() > 1000, "{media}");
    assert!(!ran.stderr.contains(KEY_VARIABLE.1), "{}", ran.stderr);
}

/// The variable that names a Python with the packages that the server of Whisper needs.
const WHISPER_PYTHON: &str = "WHISPER_PYTHON";

/// A transcription server with Whisper. It ends when its standard input is closed.
struct WhisperServer {
    child: Child,
    url: String,
}

impl WhisperServer {
    /// Starts the server. Returns `None` if the variable is not set, and reports the test as skipped.
    #[expect(clippy::print_stdout, reason = "`.ci/voice` counts these lines")]
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os(WHISPER_PYTHON) else {
            println!("skipped: no {WHISPER_PYTHON}");
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/whisper/server.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Some(Self { child, url })
    }
}

impl Drop for WhisperServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

// G96
#[test]
#[ignore = "needs installed programs; `.ci/voice` runs it"]
fn a_whisper_server_understands_what_is_said() {
    if !are_installed(&["espeak-ng"]) {
        return;
    }
    let Some(server) = WhisperServer::start() else {
        return;
    };
    let url = &server.url;
    let settings = format!("stt: {{ engine: openai, base_url: '{url}', language: en }}\n");
    let words = "turn on the lights in the kitchen";
    let call = gateway(STDIO).file(SETTINGS, &settings);
    let (_, ran) = pipe_messages(call, &[spoken_by_program(words)]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let heard = prompts(&ran).concat().to_lowercase();
    let heard = heard.replace(|c: char| !c.is_alphabetic() && c != ' ', "");
    assert_eq!(heard, words);
}
