//! Replaces a conversation with the model's answer.

use futures_util::FutureExt as _;
use futures_util::future::ready;
use tenterhook_engine::event::TurnEnd;
use tenterhook_engine::{Effect, EventKind};

use super::handler::{Handled, RecipeHandler, Thread};

/// The handler `swap_context`: replaces the conversation with the model's answer.
#[derive(Debug, Clone, Copy)]
pub struct SwapContext;

impl RecipeHandler for SwapContext {
    fn name(&self) -> &'static str {
        "swap_context"
    }

    fn events(&self) -> &[EventKind] {
        &[EventKind::TurnEnd]
    }

    fn turn_end<'a>(&'a self, thread: Thread<'a>, event: &'a TurnEnd) -> Handled<'a, TurnEnd> {
        let swapped = thread.swap_context(&event.response);
        ready(swapped.map(|()| Effect::none())).boxed()
    }
}
