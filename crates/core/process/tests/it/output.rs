//! Which parts of a child's output are kept.

use std::sync::Mutex;

use tenterhook_process::{CancellationToken, Capture, End, Limits};

use crate::support::{patient, run, sh};

#[tokio::test]
async fn both_outputs_are_kept_apart() {
    let finished = run(&sh("echo out; echo err >&2"), b"", &patient()).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.text(), "out\n");
    assert_eq!(finished.stderr.text(), "err\n");
    assert!(!finished.is_pipe_held);
}

#[tokio::test]
async fn a_flood_of_200_mb_is_read_to_its_end_in_bounded_memory() {
    let line = "echo begin; head -c 200000000 /dev/zero; echo end";
    let limits = Limits {
        stdout: Capture {
            head: 1000,
            tail: 500,
        },
        ..patient()
    };
    let finished = run(&sh(line), b"", &limits).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.bytes.len(), 1500);
    assert_eq!(finished.stdout.omitted, 200_000_010 - 1500);
    assert!(finished.stdout.head().starts_with(b"begin\n\0"));
    assert!(finished.stdout.tail().ends_with(b"\0end\n"));
    // The tail starts with a whole word, and the line of zeros has none.
    let text = finished.stdout.text();
    assert!(text.ends_with("\0\n[... 199999010 bytes omitted ...]\n"));
}

#[tokio::test]
async fn a_flood_of_both_pipes_blocks_nobody() {
    let line = "head -c 5000000 /dev/zero >&2 & head -c 5000000 /dev/zero; wait";
    let finished = run(&sh(line), b"", &patient()).await;
    assert_eq!(finished.end, End::Exited(0));
    for captured in [&finished.stdout, &finished.stderr] {
        assert!(captured.is_cut());
        assert_eq!(captured.bytes.len() as u64 + captured.omitted, 5_000_000);
    }
}

#[tokio::test]
async fn a_flood_of_standard_error_alone_blocks_nobody() {
    let line = "head -c 5000000 /dev/zero >&2; echo done";
    let finished = run(&sh(line), b"", &patient()).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.text(), "done\n");
}

#[tokio::test]
async fn invalid_utf8_is_kept_and_reported() {
    let finished = run(&sh("printf 'a\\377b'"), b"", &patient()).await;
    assert_eq!(finished.stdout.bytes, b"a\xffb");
    assert!(!finished.stdout.is_utf8());
    assert_eq!(finished.stdout.text(), "a\u{fffd}b");
}

#[tokio::test]
async fn output_in_many_small_pieces_is_whole() {
    let line = "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done";
    let finished = run(&sh(line), b"", &patient()).await;
    let text = finished.stdout.text();
    let numbers = text.lines().map(|line| line.parse::<usize>().unwrap());
    assert!(numbers.eq(0..2000));
}

#[tokio::test]
async fn whole_lines_are_shown_as_they_become_complete() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let command = sh(
        "printf 'a\nb'; until test -e gate; do sleep 0.01; done; echo c; echo no line >&2; exit 2",
    )
    .working_dir(dir.path().to_owned());
    let shown = Mutex::new(Vec::new());
    let on_output = |lines: &[u8]| {
        shown.lock().unwrap().push(lines.to_vec());
        // The child continues only after its first line was reported.
        std::fs::write(&gate, "").unwrap();
    };
    let cancel = CancellationToken::new();
    let finished = command
        .run_with_output(b"", &patient(), &cancel, &on_output)
        .await
        .unwrap();
    assert_eq!(finished.end, End::Exited(2));
    assert_eq!(finished.stdout.text(), "a\nbc\n");
    assert_eq!(*shown.lock().unwrap(), [b"a\n".to_vec(), b"bc\n".to_vec()]);
}
