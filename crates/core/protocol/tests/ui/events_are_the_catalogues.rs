//! Only the catalogue defines events.

use tenterhook_protocol::Event;

fn event<E: Event>() {}

struct Mine;

fn main() {
    event::<Mine>();
}
