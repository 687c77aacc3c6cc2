//! The log: one JSON line an event, at most 2 KiB, plain ASCII.
//!
//! Names of groups and hooks, tags and messages come from outside: control characters, right-to-left marks and
//! anything else that isn't ASCII leave as `\u` escapes, so that a line is what it seems to be.

use crate::metrics;
use std::{
    fmt::{self, Write as _},
    io::{self, Write},
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter, format::Writer},
    layer::SubscriberExt,
    registry::LookupSpan,
};

/// CloudWatch takes more, people don't.
const LONGEST_LINE: usize = 2048;

/// The function's own binary, whose lines are ours as well.
const BOOTSTRAP: &str = "bootstrap";

/// The variables that set the level, ours before Lambda's own.
pub const LEVEL_VARIABLES: [&str; 2] = ["LOG_LEVEL", "AWS_LAMBDA_LOG_LEVEL"];

/// A subscriber that writes lines to `out`; `level` is a word such as `info`. Metrics are written at every level.
pub fn subscriber<W>(level: &str, out: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Clone + Send + Sync + 'static,
{
    // An empty word would be read as `error`.
    let word = Some(level.trim().to_ascii_lowercase()).filter(|word| !word.is_empty());
    let level: LevelFilter = word
        .and_then(|word| word.parse().ok())
        .unwrap_or(LevelFilter::INFO);
    let ours = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(env!("CARGO_CRATE_NAME"), level)
        .with_target(BOOTSTRAP, level)
        .with_target(metrics::TARGET, LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(true)
        .with_target(false)
        .with_writer(Lines(out.clone()))
        .with_filter(ours);
    let only_metrics = Targets::new().with_target(metrics::TARGET, LevelFilter::INFO);
    let embedded = tracing_subscriber::fmt::layer()
        .event_format(MessageAlone)
        .with_writer(out)
        .with_filter(only_metrics);
    tracing_subscriber::registry().with(lines).with(embedded)
}

/// Prints an event's message and nothing else: a metric line is JSON already.
struct MessageAlone;

impl<S, N> FormatEvent<S, N> for MessageAlone
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        struct Message<'w>(Writer<'w>, fmt::Result);
        impl Visit for Message<'_> {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                if field.name() == "message" {
                    self.1 = writeln!(self.0, "{value:?}");
                }
            }
        }
        let mut message = Message(writer.by_ref(), Ok(()));
        event.record(&mut message);
        message.1
    }
}

/// Makes writers that escape and shorten what passes through.
#[derive(Clone)]
struct Lines<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for Lines<W> {
    type Writer = Line<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Line(self.0.make_writer())
    }
}

/// Writes one formatted event.
struct Line<W>(W);

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .write_all(safe_line(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The line as ASCII, and still one JSON object if it was too long.
fn safe_line(line: &str) -> String {
    let ascii = ascii(line.trim_end_matches('\n'));
    if ascii.len() < LONGEST_LINE {
        return ascii + "\n";
    }
    // Quoting the begin at most doubles it.
    let begins: String = ascii.chars().take(LONGEST_LINE / 2 - 100).collect();
    serde_json::json!({ "truncated_bytes": line.len(), "begins": begins }).to_string() + "\n"
}

/// Everything but printable ASCII as JSON escapes; inside a JSON line they can only stand in strings.
fn ascii(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    for c in line.chars() {
        if c == ' ' || c.is_ascii_graphic() {
            safe.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        }
    }
    safe
}

/// The beginning of a foreign text, escaped: at most 200 characters, and of a word that is as long as a token or a
/// key only the first eight.
pub fn beginning(text: &str) -> String {
    const LONGEST_WORD: usize = 24;
    let is_of_word =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '/' | '=');
    let text: String = text.chars().take(200).collect();
    let mut begins = String::new();
    for word in text.split_inclusive(|c| !is_of_word(c)) {
        let length = word.chars().take_while(|c| is_of_word(*c)).count();
        if length > LONGEST_WORD {
            begins.push_str(word.get(..8).unwrap_or_default());
            begins.push('…');
            begins.push_str(word.get(length..).unwrap_or_default());
        } else {
            begins.push_str(word);
        }
    }
    begins.escape_debug().to_string()
}
