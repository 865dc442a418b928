//! Checks every input in `corpus/`, without a fuzzer.

use std::fs;
use std::path::Path;

/// Checks all inputs of a target.
fn check_all(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("a folder of inputs") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        check(&fs::read(&path).expect("an input"));
        count += 1;
    }
    assert!(count > 0, "{target} has no inputs");
}

macro_rules! targets {
    ($($target:ident),+ $(,)?) => {
        $(
            #[test]
            fn $target() {
                check_all(stringify!($target), tenterhook_fuzz::$target::check);
            }
        )+
    };
}

targets!(
    command_line,
    event_input,
    hook_answer,
    hook_file,
    rpc_frame,
    template
);
