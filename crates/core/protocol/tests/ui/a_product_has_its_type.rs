//! A compaction summary is text.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<BeforeCompaction>::supply(&7);
}
