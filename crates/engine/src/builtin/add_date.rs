//! Tells the model today's date.

use tenterhook_protocol::{AnyEffect, EventKind};

use super::{Builtin, Run, context, takes_none};
use crate::event_ref::EventRef;
use crate::handler::HandlerError;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_date",
    events: &[EventKind::TurnStart],
    arguments: "none",
    make: |arguments| takes_none(arguments).map(|()| Box::new(AddDate) as Box<dyn Run>),
};

struct AddDate;

impl Run for AddDate {
    fn run(&self, _event: &EventRef) -> Result<AnyEffect, HandlerError> {
        let today = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
        Ok(context(format!("Today's date: {today}")))
    }
}
