//! The event `stop` only reports. Hooks may add follow-ups, but not block.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<Stop>::block("no");
}
