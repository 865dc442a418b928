//! Durable messages per second, compared with one wait for the disk for each.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use tenterhook_channel::chat::{ChannelId, ChatRef, Sender, SessionKey};
use tenterhook_channel::message::{IncomingMessage, IncomingPart};
use tenterhook_channel::store::{Recorded, Store};
use tenterhook_protocol::event::SenderRole;

/// How many messages are recorded.
const MESSAGES: u32 = 2_048;

/// How many of them are recorded at the same time.
const IN_FLIGHT: usize = 64;

/// How often a small write is synchronised for the comparison.
const SYNCS: u32 = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The system's folder for temporary files is often in memory.
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut ratios = Vec::new();
    for round in 0..11 {
        let sync = measure_syncs(&folder.path().join("syncs"))?;
        let accept = runtime.block_on(measure_accepts(&folder.path().join(round.to_string())))?;
        let ratio = accept.as_secs_f64() / sync.as_secs_f64();
        show(&format!(
            "fdatasync {sync:>10.1?}   accept, {IN_FLIGHT} in flight {accept:>10.1?}   ratio {ratio:.3}"
        ))?;
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
    show(&format!("median ratio {median:.3} (limit 0.100)"))?;
    Ok(())
}

fn show(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

/// Returns the time of one small write that is on the disk.
fn measure_syncs(path: &Path) -> std::io::Result<Duration> {
    let mut file = File::create(path)?;
    let record = [b'x'; 512];
    let start = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&record)?;
        file.sync_data()?;
    }
    Ok(start.elapsed() / SYNCS)
}

/// Returns the time per message.
async fn measure_accepts(folder: &Path) -> Result<Duration, Box<dyn std::error::Error>> {
    let store = Store::open(folder)?;
    let chat = ChatRef {
        channel: ChannelId::new("web")?,
        chat: "owner/a".to_owned(),
        thread: None,
    };
    let start = Instant::now();
    let mut accepts = stream::iter(0..MESSAGES)
        .map(|number| {
            let message = IncomingMessage {
                dedupe: number.to_string(),
                message_id: number.to_string(),
                chat: chat.clone(),
                sender: Sender {
                    id: "owner".to_owned(),
                    name: None,
                    is_bot: false,
                },
                is_direct: true,
                is_addressed: true,
                parts: vec![IncomingPart::Text {
                    text: "What is the weather today?".to_owned(),
                }],
                reply_to: None,
                at: jiff::Timestamp::UNIX_EPOCH,
            };
            store.accept(message, SenderRole::Owner, SessionKey(chat.to_string()))
        })
        .buffer_unordered(IN_FLIGHT);
    while let Some(recorded) = accepts.next().await {
        if !matches!(recorded?, Recorded::Fresh(_)) {
            return Err("a message was not recorded".into());
        }
    }
    Ok(start.elapsed() / MESSAGES)
}
