//! Translates the `channels`, `stt` and `tts` of Operator's `settings.json` into settings of the gateway.
//!
//! | Operator | gateway |
//! |---|---|
//! | `channels.telegram` | a channel of the kind `telegram` |
//! | `channels.websocket` | a channel of the kind `web`, and `listen` |
//! | `channels.stdio` | a channel of the kind `stdio` |
//! | `stt`, `tts` | `stt`, `tts` with the service of OpenAI |
//! | other channels | a comment |
//!
//! Secrets are never copied, and no value of an unknown key is shown, because it may be one.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// The port of Operator's web socket if the settings have none.
const DEFAULT_PORT: u64 = 8765;

/// What names of keys with secrets contain.
const SECRET_WORDS: [&str; 4] = ["token", "secret", "password", "key"];

/// Channels of Operator that the gateway does not have.
const OTHER_CHANNELS: [&str; 4] = ["discord", "slack", "twitch", "email"];

/// Returns the text of a `gateway.yaml` that does what Operator's settings say. Comments name what cannot be carried
/// over.
///
/// # Errors
///
/// Returns everything that is wrong with the settings.
pub(super) fn import(text: &str) -> Result<String, Vec<String>> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| vec![format!("expected a JSON object: {error}")])?;
    let mut import = Import::default();
    if let Some(settings) = import.object("the settings", &value) {
        import.settings(settings);
    }
    if import.problems.is_empty() {
        Ok(import.text)
    } else {
        Err(import.problems)
    }
}

#[derive(Default)]
struct Import {
    text: String,
    problems: Vec<String>,
}

impl Import {
    fn settings(&mut self, settings: &Object) {
        self.line("# Imported from the settings of Operator.");
        let empty = Object::new();
        let channels = settings.get("channels");
        let channels = channels.and_then(|channels| self.object("`channels`", channels));
        let channels = channels.unwrap_or(&empty);
        let socket = self.channel(channels, "websocket");
        if let Some(socket) = socket {
            self.listen(socket);
        }
        self.line("channels:");
        self.web(socket);
        if let Some(stdio) = self.channel(channels, "stdio") {
            let is_enabled = self.flag("stdio", stdio, "enabled");
            self.line(&format!(
                "  stdio: {{ kind: stdio, enabled: {is_enabled} }}"
            ));
            self.left_out("  ", "stdio", stdio, &["enabled"]);
        }
        if let Some(telegram) = self.channel(channels, "telegram") {
            self.telegram(telegram);
        }
        let known = ["websocket", "stdio", "telegram"];
        for (name, other) in channels
            .iter()
            .filter(|(name, _)| !known.contains(&name.as_str()))
        {
            self.other_channel(name, other);
        }
        self.voice("stt", settings, &["language"]);
        self.voice("tts", settings, &["voice", "language", "speed"]);
    }

    /// Writes the settings of speech. Operator chooses the model elsewhere, so the default of the service is used.
    fn voice(&mut self, name: &str, settings: &Object, carried: &[&str]) {
        let found = settings.get(name);
        let Some(voice) = found.and_then(|voice| self.object(&format!("`{name}`"), voice)) else {
            return;
        };
        let enabled = match voice.get("enabled") {
            None | Some(Value::Null) => "auto",
            Some(Value::Bool(true)) => "true",
            Some(Value::Bool(false)) => "false",
            Some(other) => {
                let found = kind(other);
                self.problems.push(format!(
                    "`{name}.enabled`: expected true, false or null, found {found}"
                ));
                return;
            }
        };
        if enabled == "false" {
            self.line(&format!("{name}: off"));
            return;
        }
        self.line(&format!(
            "# `{name}` asks OpenAI's service with the key in OPENAI_API_KEY. For another model or a program, see the settings \
             of the gateway."
        ));
        let mut line = format!("{name}: {{ enabled: {enabled}, engine: openai");
        for key in carried {
            // A text is written as in JSON, which is valid here too.
            if let Some(value @ (Value::String(_) | Value::Number(_))) = voice.get(*key) {
                let _ = write!(line, ", {key}: {value}");
            }
        }
        self.line(&format!("{line} }}"));
        let known: Vec<&str> = ["enabled"].iter().chain(carried).copied().collect();
        self.left_out("", name, voice, &known);
    }

    fn channel<'v>(&mut self, channels: &'v Object, name: &str) -> Option<&'v Object> {
        let channel = channels.get(name)?;
        self.object(&path(name), channel)
    }

    /// Writes the address of the server.
    fn listen(&mut self, socket: &Object) {
        let port = match socket.get("port") {
            None => DEFAULT_PORT,
            Some(port) => match port.as_u64().filter(|port| (1..=65_535).contains(port)) {
                Some(port) => port,
                None => self.wrong(
                    "websocket",
                    "port",
                    port,
                    "a port from 1 to 65535",
                    DEFAULT_PORT,
                ),
            },
        };
        let host = match socket.get("host").map(|host| (host, host.as_str())) {
            None => "127.0.0.1",
            Some((_, Some(host))) => host,
            Some((host, None)) => self.wrong("websocket", "host", host, "a text", "127.0.0.1"),
        };
        let loopback = match host.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() => Some(address.to_string()),
            Err(_) if host == "localhost" => Some("127.0.0.1".to_owned()),
            _ => None,
        };
        if loopback.is_none() {
            self.line(
                "# Operator's server was open to other machines. For this, set the address in `listen`, and `public: true`.",
            );
        }
        let shown = match loopback {
            Some(address) if address.contains(':') => format!("\"[{address}]:{port}\""),
            Some(address) => format!("{address}:{port}"),
            None => format!("127.0.0.1:{port}"),
        };
        self.line(&format!("listen: {shown}"));
    }

    /// Writes the page. Operator has none unless its settings name the web socket.
    fn web(&mut self, socket: Option<&Object>) {
        let is_enabled = socket.is_some_and(|socket| self.flag("websocket", socket, "enabled"));
        self.line(&format!("  web: {{ kind: web, enabled: {is_enabled} }}"));
        if let Some(socket) = socket {
            self.line("  # Clients need an access token: see `tenterhook gateway token create`.");
            self.left_out("  ", "websocket", socket, &["enabled", "host", "port"]);
        }
    }

    fn telegram(&mut self, telegram: &Object) {
        let is_enabled = self.flag("telegram", telegram, "enabled");
        let is_thinking = self.flag("telegram", telegram, "show_thinking");
        let (members, names) = self.senders(telegram);
        self.line("  telegram:");
        self.line("    kind: telegram");
        self.line(&format!("    enabled: {is_enabled}"));
        self.line("    token_env: TELEGRAM_BOT_TOKEN  # put the bot's token into this variable");
        if members.is_empty() {
            self.line("    dm: pairing  # a stranger gets a code; `tenterhook gateway pair approve` admits them");
        } else {
            self.line("    dm: allow");
            self.line(&format!("    members: [{}]", members.join(", ")));
        }
        if names > 0 {
            self.line(&format!(
                "    # {names} of `allow_from` not carried over: only numeric ids identify a sender."
            ));
        }
        self.line("    owners: []  # add your own id: only owners can approve tool calls");
        self.line("    # Operator answers in every group. Here, list them: `groups: { allow: [\"-100…\"] }`.");
        if is_thinking {
            self.line("    show: { thinking: true }");
        }
        let known = ["enabled", "show_thinking", "allow_from"];
        self.left_out("    ", "telegram", telegram, &known);
    }

    /// Returns the quoted ids of `allow_from`, and the number of its other entries.
    fn senders(&mut self, telegram: &Object) -> (Vec<String>, usize) {
        let Some(listed) = telegram.get("allow_from") else {
            return (Vec::new(), 0);
        };
        let Some(listed) = listed.as_array() else {
            return self.wrong("telegram", "allow_from", listed, "a list", (Vec::new(), 0));
        };
        let ids = listed.iter().filter_map(|sender| match sender {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) => Some(text.clone()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        });
        let is_id = |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let ids: Vec<String> = ids.filter(is_id).map(|id| format!("\"{id}\"")).collect();
        let others = listed.len() - ids.len();
        (ids, others)
    }

    fn other_channel(&mut self, name: &str, channel: &Value) {
        if self.object(&path(name), channel).is_none() {
            return;
        }
        let name = plain(name);
        let hint = if OTHER_CHANNELS.contains(&name.as_str()) {
            "A program can be this channel: see `kind: command`."
        } else {
            "The gateway has no such channel."
        };
        self.line(&format!("  # `{name}` is not carried over. {hint}"));
    }

    /// Writes a comment for each key that has no counterpart.
    fn left_out(&mut self, indent: &str, channel: &str, keys: &Object, known: &[&str]) {
        for key in keys.keys().filter(|key| !known.contains(&key.as_str())) {
            let lower = key.to_lowercase();
            let why = if SECRET_WORDS.iter().any(|word| lower.contains(word)) {
                "was not copied, because it is a secret"
            } else {
                "is not carried over"
            };
            self.line(&format!("{indent}# `{channel}.{}` {why}.", plain(key)));
        }
    }

    fn flag(&mut self, channel: &str, keys: &Object, key: &str) -> bool {
        match keys.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => self.wrong(channel, key, other, "true or false", false),
        }
    }

    fn object<'v>(&mut self, what: &str, value: &'v Value) -> Option<&'v Object> {
        let object = value.as_object();
        if object.is_none() {
            self.problems
                .push(format!("{what}: expected an object, found {}", kind(value)));
        }
        object
    }

    /// Notes a wrong value. Does not show it: it may be a secret.
    fn wrong<T>(
        &mut self,
        channel: &str,
        key: &str,
        found: &Value,
        expected: &str,
        default: T,
    ) -> T {
        let found = kind(found);
        self.problems.push(format!(
            "`channels.{channel}.{key}`: expected {expected}, found {found}"
        ));
        default
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }
}

fn path(channel: &str) -> String {
    format!("`channels.{}`", plain(channel))
}

/// Returns a name that cannot end a comment.
fn plain(name: &str) -> String {
    let short = name.chars().take(64);
    short
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_carried_over_and_secrets_are_not() {
        let settings = r#"{
            "model": "x",
            "channels": {
                "telegram": {"enabled": true, "show_thinking": true, "bot_token": "123:ABC", "allow_from": [1001, "@ann"]},
                "websocket": {"enabled": true, "host": "0.0.0.0", "port": 9000},
                "discord": {"enabled": true, "bot_token": "456:DEF"}
            },
            "stt": {"enabled": true, "language": "en", "api_key": "789:GHI"},
            "tts": {"enabled": null, "voice": "nova", "speed": 1.25, "language": null}
        }"#;
        let text = import(settings).unwrap();
        for part in [
            "listen: 127.0.0.1:9000\n",
            "`public: true`",
            "  web: { kind: web, enabled: true }\n",
            "    token_env: TELEGRAM_BOT_TOKEN",
            "    dm: allow\n    members: [\"1001\"]\n",
            "# 1 of `allow_from` not carried over",
            "    show: { thinking: true }\n",
            "# `telegram.bot_token` was not copied, because it is a secret.",
            "# `discord` is not carried over.",
            "stt: { enabled: true, engine: openai, language: \"en\" }\n# `stt.api_key` was not copied, because it is a secret.\n",
            "tts: { enabled: auto, engine: openai, voice: \"nova\", speed: 1.25 }\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for secret in ["123:ABC", "456:DEF", "789:GHI"] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn every_wrong_value_is_reported_without_showing_it() {
        let settings = r#"{"channels": {
            "telegram": {"enabled": "123:ABC", "allow_from": 5},
            "websocket": {"port": 0},
            "slack": true
        }, "stt": {"enabled": "yes"}, "tts": 1}"#;
        let problems = import(settings).unwrap_err();
        assert_eq!(
            problems,
            [
                "`channels.websocket.port`: expected a port from 1 to 65535, found a number",
                "`channels.telegram.enabled`: expected true or false, found a text",
                "`channels.telegram.allow_from`: expected a list, found a number",
                "`channels.slack`: expected an object, found true or false",
                "`stt.enabled`: expected true, false or null, found a text",
                "`tts`: expected an object, found a number",
            ]
        );
        assert_eq!(import("[]").unwrap_err().len(), 1);
    }
}
