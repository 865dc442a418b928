//! The outcome of a turn start has no permission.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Outcome::<TurnStart>::default().permission();
}
