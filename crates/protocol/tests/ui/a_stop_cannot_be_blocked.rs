//! The end of a run is reported; hooks may only add follow-ups.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<Stop>::block("no");
}
