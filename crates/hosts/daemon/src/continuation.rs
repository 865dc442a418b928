//! How often hooks keep an agent working. Some hosts would continue forever.

/// How often hooks may keep the agent working before the user speaks again.
pub(crate) const MAX_CONTINUED: u32 = 8;

/// How often hooks have kept the agent of one session working since the user's last input.
#[derive(Debug, Default)]
pub(crate) struct Continuation {
    count: u32,
    /// Whether the next prompt may be the message of a hook, which some hosts announce like an input of the user.
    announces_message: bool,
}

impl Continuation {
    /// Starts to count again, unless the prompt may be the message with which a hook kept the agent working.
    pub(crate) fn prompted(&mut self) {
        if !std::mem::take(&mut self.announces_message) {
            self.count = 0;
        }
    }

    /// Returns whether the agent may continue, because hooks want it to.
    pub(crate) fn go_on(&mut self) -> bool {
        self.announces_message = self.count < MAX_CONTINUED;
        if self.announces_message {
            self.count += 1;
        }
        self.announces_message
    }

    /// Starts to count again, because the hooks let the agent end.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(continuation: &mut Continuation, mut between: impl FnMut(&mut Continuation)) -> u32 {
        let mut rounds = 0;
        while rounds < 100 && continuation.go_on() {
            rounds += 1;
            between(continuation);
        }
        rounds
    }

    #[test]
    fn a_host_that_announces_the_messages_of_hooks_as_prompts_is_bounded_like_others() {
        for announces in [false, true] {
            let mut continuation = Continuation::default();
            let between = |continuation: &mut Continuation| {
                if announces {
                    continuation.prompted();
                }
            };
            assert_eq!(rounds(&mut continuation, between), MAX_CONTINUED);
            assert!(!continuation.go_on());
            // Now only the user can speak.
            continuation.prompted();
            assert_eq!(rounds(&mut continuation, between), MAX_CONTINUED);
        }
    }

    #[test]
    fn an_agent_that_hooks_let_end_is_counted_from_the_start() {
        let mut continuation = Continuation::default();
        assert!(continuation.go_on());
        continuation.end();
        assert_eq!(rounds(&mut continuation, |_| {}), MAX_CONTINUED);
    }
}
