//! Reads back events in the forms in which hook systems send them to their hooks.
//!
//! A dialect writes events for hooks. A form goes in the other direction: it turns an event that was
//! captured on the stdin of a hook into an event of the catalogue and its origin. The event can then be
//! sent to other hooks. Each system's folder declares its own [`Form`]s. This module recognises forms and
//! contains the code that they share.
//!
//! ```
//! use serde_json::json;
//! use tenterhook_systems::form::Form;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let captured = json!({
//!     "event": "before_tool_call", "conv_id": "c1", "cwd": "/srv/app", "invoked_by": "main",
//!     "tool_name": "deploy", "tool_input": { "target": "production" }, "tool_user_id": "call_1",
//! });
//! let captured = captured.as_object().ok_or("not an object")?;
//! let event = "pre_tool_use".parse()?;
//! let form = Form::recognise(&event, captured)?;
//! assert_eq!(form.name, "kodelet");
//! let read = form.read(&event, captured)?;
//! assert_eq!(read.event.subject(), Some("deploy"));
//! assert_eq!(read.origin.session_id.as_str(), "c1");
//! # Ok(())
//! # }
//! ```

pub(crate) mod definition;
mod host_event;
pub(crate) mod reading;
mod recognition;

pub use self::definition::Form;
pub use self::host_event::{host_of_form, readable_forms};
pub use self::recognition::{
    FormError, ReadBack, SystemEventName, event_of_system, forms, system_event_names,
};
