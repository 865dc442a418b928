//! Placeholders for the built-ins that ask services, in a program without HTTP. A hook that names one is refused.

use tenterhook_protocol::EventKind;

use super::row::Builtin;

pub(super) const HTTP_POST: Builtin = not_compiled_in("http_post", EventKind::ALL);
pub(super) const STT: Builtin = not_compiled_in("stt", &[EventKind::MessageReceive]);
pub(super) const TTS: Builtin = not_compiled_in("tts", &[EventKind::MessageSend]);
pub(super) const UNLOAD: Builtin = not_compiled_in("unload", &[EventKind::AgentSwitch]);

const fn not_compiled_in(name: &'static str, events: &'static [EventKind]) -> Builtin {
    Builtin {
        name,
        events,
        arguments: "none in this program",
        make: |_| {
            Err("this program was built without the feature `http` of `tenterhook`".to_owned())
        },
    }
}
