//! A turn start stops nothing.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<TurnStart>::deny("no");
}
