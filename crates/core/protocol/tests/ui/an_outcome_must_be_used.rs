//! An outcome that is dropped may contain a deny.

#![deny(unused_must_use)]

use tenterhook_protocol::Outcome;
use tenterhook_protocol::event::PreToolUse;

fn dispatch() -> Outcome<PreToolUse> {
    Outcome::default()
}

fn main() {
    dispatch();
}
