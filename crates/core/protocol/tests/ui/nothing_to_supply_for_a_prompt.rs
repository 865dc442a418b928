//! A prompt has no product that a hook could supply.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<UserPromptSubmit>::supply(&String::new());
}
