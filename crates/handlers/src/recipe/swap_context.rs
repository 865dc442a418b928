//! Lets a conversation go on with nothing but the model's answer.

use futures_util::FutureExt as _;
use futures_util::future::ready;
use tenterhook::event::TurnEnd;
use tenterhook::{Effect, EventKind};

use super::{Handled, RecipeHandler, Thread};

/// `swap_context`: what stood in the conversation is replaced by the model's answer.
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
