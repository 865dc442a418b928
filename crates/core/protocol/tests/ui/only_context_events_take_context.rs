//! No model call follows the end of a turn, so context has no use.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<TurnEnd>::none().context("text");
}
