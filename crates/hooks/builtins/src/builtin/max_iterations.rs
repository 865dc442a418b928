//! Stops a run that calls the model too often.

use futures_util::future::{BoxFuture, ready};
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::event::BeforeLlmCall;
use tenterhook_protocol::{AnyEffect, Effect, EventKind};

use super::row::{Builtin, EventRunner, count};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "max_iterations",
    events: &[EventKind::BeforeLlmCall],
    arguments: "the maximum number of model calls in one run, a whole number from 1",
    make: |setup| {
        let most = count(setup.arguments, None)?;
        Ok(Box::new(MaxIterations { most }))
    },
};

struct MaxIterations {
    most: u32,
}

impl MaxIterations {
    fn judge(&self, event: &BeforeLlmCall) -> Effect<BeforeLlmCall> {
        if event.iteration <= self.most {
            return Effect::none();
        }
        Effect::none().stop_run(format!(
            "Agent terminated: max_iterations builtin reached its limit of {} model call(s).",
            self.most
        ))
    }
}

impl EventRunner for MaxIterations {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let effect = call.event.downcast().map(|event| self.judge(event));
        let effect = effect.and_then(Effect::into_any);
        Box::pin(ready(Ok(effect.map(|effect| *effect).unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row D-113 of `docs/reference/conformance.md`.
    #[test]
    fn the_call_behind_the_last_one_ends_the_run() {
        let judge = MaxIterations { most: 2 };
        for (iteration, ends) in [(0, false), (1, false), (2, false), (3, true), (4, true)] {
            let effect = judge.judge(&BeforeLlmCall::new().with_iteration(iteration));
            let reason = effect.into_any().and_then(|effect| effect.stop_run);
            let expected =
                "Agent terminated: max_iterations builtin reached its limit of 2 model call(s).";
            assert_eq!(reason.as_deref(), ends.then_some(expected), "{iteration}");
        }
    }

    #[test]
    fn a_limit_that_is_no_limit_is_refused() {
        for arguments in [vec![], vec!["0"], vec!["-1"], vec!["ten"], vec!["1", "2"]] {
            let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
            let setup = super::super::testing::setup(&arguments);
            assert!((BUILTIN.make)(&setup).is_err(), "{arguments:?}");
        }
    }
}
