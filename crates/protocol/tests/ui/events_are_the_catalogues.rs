//! Only the catalogue makes events.

use tenterhook_protocol::Event;

fn event<E: Event>() {}

struct Mine;

fn main() {
    event::<Mine>();
}
