//! No message repeats arguments or values of variables, because they may be secret.

use tenterhook_process::{Command, Program, Slots};

use crate::support::{file, patient, sh, try_run};

const CANARY: &str = "canary-7b1d";

#[tokio::test]
async fn no_message_shows_an_argument_or_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let interpreted = file(dir.path(), "check", "#!/no/such/interpreter\n", 0o755);
    let too_long = CANARY.repeat(100_000);
    for command in [
        Command::new(Program::exec(["cat", CANARY])),
        Command::new(Program::exec(["no-such-check", CANARY])),
        Command::new(Program::exec([interpreted.to_str().unwrap(), CANARY])),
        Command::new(Program::exec(["cat", &too_long])),
        sh(&format!("no-such-check {CANARY}")),
        sh(&format!("TOKEN={CANARY} check")),
    ] {
        let command = command.env("TOKEN", CANARY).slots(Slots::new(1));
        assert!(!format!("{command:?}").contains(CANARY));
        if let Err(error) = try_run(&command, b"", &patient()).await {
            assert!(!format!("{error} {error:?}").contains(CANARY));
        }
    }
}
