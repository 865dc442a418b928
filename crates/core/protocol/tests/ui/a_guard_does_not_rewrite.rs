//! A guard judges the final arguments.

use tenterhook_protocol::event::*;
use tenterhook_protocol::*;

fn main() {
    let _ = Effect::<ToolGuard>::none().patch_input(JsonObject::new());
}
