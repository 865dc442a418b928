//! Children and their standard input.

use tenterhook_process::{Command, End, Program};

use crate::support::{patient, run, sh};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn the_whole_input_arrives() {
    for size in [0, 1, 1024, 64 * 1024, 64 * 1024 + 1, MIB, 4 * MIB + 7] {
        let payload = vec![b'x'; size];
        let finished = run(&sh("wc -c"), &payload, &patient()).await;
        assert_eq!(finished.end, End::Exited(0));
        assert_eq!(finished.stdout.text().trim(), size.to_string());
    }
}

#[tokio::test]
async fn large_input_comes_back_while_it_is_written() {
    let payload: Vec<u8> = (0..MIB).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let finished = run(&Command::new(Program::exec(["cat"])), &payload, &patient()).await;
    assert_eq!(finished.stdout.bytes, payload);
}

#[tokio::test]
async fn a_slow_reader_gets_everything() {
    let payload = vec![b'x'; 2 * MIB];
    let line = "sleep 0.05; head -c 70000 >/dev/null; sleep 0.05; wc -c";
    let finished = run(&sh(line), &payload, &patient()).await;
    assert_eq!(finished.end, End::Exited(0));
    let rest: usize = finished.stdout.text().trim().parse().unwrap();
    assert_eq!(rest, 2 * MIB - 70_000);
}

#[tokio::test]
async fn a_child_that_never_reads_is_not_an_error() {
    for size in [1024, MIB, 4 * MIB] {
        let payload = vec![b'x'; size];
        let command = Command::new(Program::exec(["sleep", "0.05"]));
        let finished = run(&command, &payload, &patient()).await;
        assert_eq!(finished.end, End::Exited(0));
    }
}

#[tokio::test]
async fn a_child_that_closes_its_input_is_not_an_error() {
    for size in [1024, MIB, 4 * MIB] {
        let payload = vec![b'x'; size];
        let finished = run(&sh("exec <&-; echo closed; exit 4"), &payload, &patient()).await;
        assert_eq!(finished.end, End::Exited(4));
        assert_eq!(finished.stdout.text(), "closed\n");
    }
}

#[tokio::test]
async fn a_child_sees_the_end_of_empty_input() {
    let finished = run(&Command::new(Program::exec(["cat"])), b"", &patient()).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.text(), "");
}
