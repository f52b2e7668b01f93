//! The metrics page: numbers as text, in the exposition format of Prometheus.

use super::buckets::Drawn;
use super::names::{ALL, Kind, Metric};
use metrics::Key;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What the page says it is.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Series by the name of their metric, each as the lines that it will be.
#[derive(Default)]
pub(super) struct Families {
    lines: BTreeMap<&'static str, Vec<String>>,
}

impl Families {
    pub(super) fn count(&mut self, key: &Key, count: u64) {
        self.line(key, |line| {
            let _ = write!(line, " {count}");
        });
    }

    /// What is not a number is not there.
    pub(super) fn number(&mut self, key: &Key, value: f64) {
        if !value.is_nan() {
            self.line(key, |line| {
                line.push(' ');
                float(line, value);
            });
        }
    }

    pub(super) fn distribution(&mut self, key: &Key, drawn: Drawn) {
        let Some(metric) = Metric::find(key.name()) else { return };
        let (mut text, labels) = (String::new(), labels(key));
        let bounds = metric.bounds().iter().copied().chain([f64::INFINITY]);
        for (bound, count) in bounds.zip(&drawn.cumulative) {
            let _ = write!(text, "{}_bucket{{{labels}{}le=\"", metric.name, comma(&labels));
            float(&mut text, bound);
            let _ = writeln!(text, "\"}} {count}");
        }
        let braced = braced(&labels);
        let _ = write!(text, "{}_sum{braced} ", metric.name);
        float(&mut text, drawn.sum);
        let _ = write!(text, "\n{}_count{braced} {}", metric.name, drawn.count());
        self.lines.entry(metric.name).or_default().push(text);
    }

    /// In the order of `names`, so that what belongs together stands together. What nobody counts yet is left out.
    pub(super) fn render(self) -> String {
        let mut page = String::new();
        for metric in ALL {
            let Some(lines) = self.lines.get(metric.name) else { continue };
            head(&mut page, metric);
            for line in lines {
                page.push_str(line);
                page.push('\n');
            }
        }
        page
    }

    fn line(&mut self, key: &Key, value: impl FnOnce(&mut String)) {
        let Some(metric) = Metric::find(key.name()) else { return };
        let mut line = format!("{}{}", metric.name, braced(&labels(key)));
        value(&mut line);
        self.lines.entry(metric.name).or_default().push(line);
    }
}

fn head(page: &mut String, metric: &Metric) {
    let Metric { name, kind, help, .. } = metric;
    let _ = writeln!(page, "# HELP {name} {}", escaped(help, false));
    let _ = writeln!(page, "# TYPE {name} {}", Kind::word(*kind));
}

/// `a="x",b="y"`
fn labels(key: &Key) -> String {
    let mut text = String::new();
    for label in key.labels() {
        let _ = write!(text, "{}{}=\"{}\"", comma(&text), label.key(), escaped(label.value(), true));
    }
    text
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

fn comma(before: &str) -> &'static str {
    if before.is_empty() { "" } else { "," }
}

/// Nothing that a label or a help says may end its line or its quotes.
fn escaped(text: &str, quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out
}

fn float(text: &mut String, value: f64) {
    let _ = match value {
        f64::INFINITY => write!(text, "+Inf"),
        f64::NEG_INFINITY => write!(text, "-Inf"),
        value => write!(text, "{value}"),
    };
}
