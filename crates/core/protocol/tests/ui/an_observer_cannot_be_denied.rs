//! Hooks cannot stop the start of a turn.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<TurnStart>::deny("no");
}
