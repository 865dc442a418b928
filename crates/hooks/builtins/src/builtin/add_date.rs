//! Tells the model today's date.

use futures_util::future::{BoxFuture, ready};
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner, context, takes_none};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_date",
    events: &[EventKind::TurnStart],
    arguments: "none",
    make: |setup| takes_none(setup.arguments).map(|()| Box::new(AddDate) as Box<dyn EventRunner>),
};

struct AddDate;

impl EventRunner for AddDate {
    fn run<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let today = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
        Box::pin(ready(Ok(context(format!("Today's date: {today}")))))
    }
}
