//! What the types promise: answers that an event does not honour do not compile.

#[test]
fn answers_that_an_event_does_not_honour_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
