//! What programs that watch the gateway see: its status, whether it is ready, and metrics in the text format of
//! Prometheus.

use std::fmt::Write as _;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use tenterhook_channel::store::{QueueDepth, Store};
use tenterhook_web::server::GatewayReports;

use crate::running::Running;
use crate::supervisor::{ChannelState, ChannelStatus};

/// Describes a gateway for the routes of its server.
pub(crate) struct RunningReports(pub(crate) Weak<Running>);

impl GatewayReports for RunningReports {
    fn status(&self) -> Value {
        match self.0.upgrade() {
            Some(running) => running.status(),
            None => Value::Null,
        }
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(running) => metrics_text(&running).await,
                None => String::new(),
            }
        })
    }

    fn unready(&self) -> BoxFuture<'_, Option<&'static str>> {
        Box::pin(async move {
            let running = self.0.upgrade();
            let running = running.filter(|it| !it.intake.is_closed.load(Ordering::Acquire));
            match running {
                None => Some("stopping"),
                Some(running) if !running.store.is_writable().await => Some("store"),
                Some(_) => None,
            }
        })
    }
}

/// How a metric changes.
#[derive(Debug, Clone, Copy)]
enum MetricKind {
    /// It only grows while the gateway runs.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The lines of all metrics.
#[derive(Debug, Default)]
struct MetricsText(String);

impl MetricsText {
    /// Begins a metric. Its samples follow.
    fn begin(&mut self, kind: MetricKind, name: &str, help: &str) {
        let word = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {word}"));
    }

    /// Adds a sample of a metric with labels.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escape_label(value)))
            .collect();
        if labels.is_empty() {
            self.line(format_args!("{name} {value}"));
        } else {
            self.line(format_args!("{name}{{{}}} {value}", labels.join(",")));
        }
    }

    /// Adds a metric with one sample.
    fn add(&mut self, kind: MetricKind, (name, help): (&str, &str), value: f64) {
        self.begin(kind, name, help);
        self.sample(name, &[], value);
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        writeln!(self.0, "{text}").ok();
    }
}

fn escape_label(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

async fn metrics_text(running: &Running) -> String {
    use MetricKind::{Counter, Gauge};

    let mut text = MetricsText::default();
    let name = "tenterhook_build_info";
    text.begin(Gauge, name, "The version of the program.");
    text.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let started = (
        "tenterhook_gateway_start_time_seconds",
        "When the gateway was started, in seconds since 1970.",
    );
    text.add(Gauge, started, seconds(running.started));

    let name = "tenterhook_gateway_messages_total";
    text.begin(
        Counter,
        name,
        "Messages that channels have offered, by result.",
    );
    for (result, count) in running.intake.counts.all() {
        text.sample(name, &[("result", result)], number(count));
    }
    let open = (
        "tenterhook_gateway_conversations",
        "Conversations that are open.",
    );
    text.add(Gauge, open, number(running.router.open() as u64));
    let channels = running.channels.all();
    let channels: Vec<_> = channels.iter().map(|channel| channel.status()).collect();
    add_channels(&mut text, &channels);
    add_store(&mut text, &running.store).await;
    if let Some(resident) = resident_memory() {
        let resident_memory = (
            "process_resident_memory_bytes",
            "Memory of the process that is resident.",
        );
        text.add(Gauge, resident_memory, number(resident));
    }
    text.0
}

async fn add_store(text: &mut MetricsText, store: &Store) {
    let is_writable = f64::from(u8::from(store.is_writable().await));
    let writable = (
        "tenterhook_gateway_store_writable",
        "1 if messages can be stored, 0 if the last attempt failed.",
    );
    text.add(MetricKind::Gauge, writable, is_writable);
    // A store that cannot be read is shown by the metric above and by the missing ones below.
    if let Ok(queues) = store.queues().await {
        let (mut inbox, mut outbox) = (QueueDepth::default(), QueueDepth::default());
        for queue in queues {
            inbox.add(queue.inbox);
            outbox.add(queue.outbox);
        }
        add_queues(text, &[("inbox", inbox), ("outbox", outbox)]);
    }
}

fn add_channels(text: &mut MetricsText, channels: &[ChannelStatus]) {
    let name = "tenterhook_gateway_channel_up";
    text.begin(
        MetricKind::Gauge,
        name,
        "1 for a channel that is connected.",
    );
    for channel in channels {
        let is_up = f64::from(u8::from(channel.state == ChannelState::Up));
        let labels = [("channel", channel.id.as_str()), ("kind", channel.kind)];
        text.sample(name, &labels, is_up);
    }
    let name = "tenterhook_gateway_channel_since_seconds";
    text.begin(
        MetricKind::Gauge,
        name,
        "Since when a channel is in its state, in seconds since 1970.",
    );
    for channel in channels {
        let labels = [("channel", channel.id.as_str()), ("kind", channel.kind)];
        text.sample(name, &labels, seconds(channel.since));
    }
}

fn add_queues(text: &mut MetricsText, queues: &[(&str, QueueDepth)]) {
    let name = "tenterhook_gateway_waiting";
    text.begin(
        MetricKind::Gauge,
        name,
        "Messages that are not answered (inbox), and parts of answers that are not sent (outbox).",
    );
    for (queue, depth) in queues {
        text.sample(name, &[("queue", queue)], number(depth.waiting));
    }
    let name = "tenterhook_gateway_oldest_waiting_seconds";
    text.begin(
        MetricKind::Gauge,
        name,
        "How long the oldest of them has waited.",
    );
    let now = Timestamp::now().as_millisecond();
    for (queue, depth) in queues {
        let waited = depth.oldest.map_or(0, |oldest| now.saturating_sub(oldest));
        let waited = u64::try_from(waited).unwrap_or_default();
        text.sample(name, &[("queue", queue)], number(waited) / 1000.0);
    }
}

fn seconds(time: Timestamp) -> f64 {
    let milliseconds = u64::try_from(time.as_millisecond()).unwrap_or_default();
    number(milliseconds) / 1000.0
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the format has no other numbers, and counts are far below 2^53"
)]
fn number(count: u64) -> f64 {
    count as f64
}

/// Returns the resident memory of this process in bytes, on systems that show it in `/proc`.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_line() {
        let mut text = MetricsText::default();
        text.begin(MetricKind::Counter, "m_total", "Help.");
        text.sample("m_total", &[("a", "x\"} 1\nm 2\\"), ("b", "")], 2.0);
        let expected = "# HELP m_total Help.\n# TYPE m_total counter\n\
                        m_total{a=\"x\\\"} 1\\nm 2\\\\\",b=\"\"} 2\n";
        assert_eq!(text.0, expected);
    }
}
