//! A prompt can be blocked; there is no permission to ask for.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<UserPromptSubmit>::ask("sure?");
}
