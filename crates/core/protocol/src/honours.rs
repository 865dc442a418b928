//! Marker traits of the events that honour a capability. Only the catalogue implements them.

use crate::capability::each_capability;
use crate::catalogue::Event;

macro_rules! markers {
    ($( $(#[$meta:meta])* $name:ident = $key:literal, $verb:literal );+ $(;)?) => { $(
        #[doc = concat!("Events that honour `", $key, "`.")]
        #[diagnostic::on_unimplemented(
            message = $verb,
            label = "not honoured by this event",
            note = "the event catalogue lists what each event honours"
        )]
        pub trait $name: Event {}
    )+ };
}

each_capability! { markers }
