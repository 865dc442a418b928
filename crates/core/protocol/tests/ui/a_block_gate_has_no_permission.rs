//! A prompt can be blocked, but hooks cannot allow, ask or deny.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<UserPromptSubmit>::ask("sure?");
}
