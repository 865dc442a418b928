//! A turn end has no model call to tell anything.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<TurnEnd>::none().context("text");
}
