//! Which lines are shown and how they look; that nothing a plugin says makes a line or a field of its own.

use super::*;
use crate::metrics::PluginMetrics;
use crate::model::TaskId;
use crate::plugin::{GuestLine, GuestLog, Level, Traced};
use std::sync::{Arc, Mutex};

fn asked(text: &str) -> Result<String, String> {
    filter(Some(text.into()), "info").map(|filter| filter.to_string()).map_err(|wrong| wrong.to_string())
}

#[test]
fn what_says_a_level_is_taken() {
    for right in
        ["debug", "WARN", "pelton::task=trace,info", "off", "plugin=off, debug", "info,", "pelton[{task}]=debug"]
    {
        assert!(asked(right).is_ok(), "{right}: {:?}", asked(right));
    }
    for nothing in ["", " "] {
        assert_eq!(asked(nothing).as_deref(), Ok("info"));
    }
    assert_eq!(filter(None, "warn").unwrap().to_string(), "warn");
}

#[test]
fn what_would_show_nothing_is_refused_with_what_is_right() {
    for wrong in ["debgu", "pelton", "info,pelton::task", "pelton=debgu", "verbose,info"] {
        let said = asked(wrong).expect_err(wrong);
        assert!(said.starts_with(&format!("PELTON_LOG=`{wrong}`: ")) && said.contains("TARGET=LEVEL"), "{said}");
    }
}

#[test]
fn the_command_line_says_how_lines_look_or_else_the_variable() {
    let of = |asked, variable: Option<&str>| format(asked, variable.map(Into::into)).map_err(|wrong| wrong.to_string());
    assert_eq!(of(None, None), Ok(LogFormat::Text));
    assert_eq!(of(None, Some("")), Ok(LogFormat::Text));
    assert_eq!(of(None, Some("json")), Ok(LogFormat::Json));
    assert_eq!(of(None, Some(" JSON ")), Ok(LogFormat::Json));
    assert_eq!(of(Some(LogFormat::Text), Some("json")), Ok(LogFormat::Text));
    assert_eq!(of(Some(LogFormat::Json), Some("wrong")), Ok(LogFormat::Json), "nobody asked the variable");
    let wrong = of(None, Some("yaml")).unwrap_err();
    assert!(wrong.contains("PELTON_LOG_FORMAT=`yaml`") && wrong.contains("text or json"), "{wrong}");
}

/// What was written, for a look at it.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `act` logs in a format.
fn logged(format: LogFormat, colours: bool, act: impl FnOnce()) -> String {
    let (paper, filter) = (Paper::default(), filter(None, "info").unwrap());
    let to = paper.clone();
    tracing::subscriber::with_default(subscriber(format, filter, colours, move || to.clone()), act);
    let written = paper.0.lock().unwrap().clone();
    String::from_utf8(written).unwrap()
}

fn plugin_says(message: &str, fields: &[(&str, &str)]) {
    let task = TaskId { processor: "p".into(), partition: 3 };
    let fields: Vec<(String, String)> = fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let line = GuestLine { level: Level::Info, message, fields: &fields, offset: Some(7), rerun: false };
    Traced { task, metrics: PluginMetrics::new("p") }.line(&line);
}

const NASTY: &[&str] = &[
    "a\n2026-01-01T00:00:00Z ERROR forged",
    "a\r\nforged",
    "\u{1b}[2J\u{1b}[31mforged",
    "a\u{85}forged\u{2028}forged\u{2029}\u{9b}2J",
    "\u{202e}degrof\u{2066}",
    "\", \"level\":\"ERROR\", \"x\":\"",
    "{}\\ \u{0} \u{7f}",
];

#[test]
fn a_plugins_line_says_whose_it_is_and_which_record_it_was_at() {
    let text = logged(LogFormat::Text, false, || plugin_says("hello \"you\"", &[("a", "1")]));
    assert!(text.ends_with("INFO hello \"you\" processor=p partition=3 offset=7 fields=a=\"1\"\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&logged(LogFormat::Json, false, || plugin_says("hello", &[]))).unwrap();
    assert_eq!((&json["message"], &json["processor"]), (&"hello".into(), &"p".into()));
    assert_eq!((&json["partition"], &json["offset"], &json["target"]), (&3.into(), &7.into(), &"plugin".into()));
}

#[test]
fn nothing_that_a_plugin_says_makes_a_second_line_or_reaches_a_terminal() {
    for nasty in NASTY {
        for colours in [false, true] {
            let text = logged(LogFormat::Text, colours, || {
                plugin_says(nasty, &[(nasty, nasty)]);
                tracing::error!(code = "x", "a fault with a plugin's words: {nasty}");
            });
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            assert_eq!(lines.len(), 2, "{text:?}");
            assert!(!text.contains(['\r', '\u{0}', '\u{7f}', '\u{85}', '\u{2028}', '\u{202e}', '\u{9b}']), "{text:?}");
            assert!(!text.contains("\u{1b}[2J"), "{text:?}");
            assert!(colours || !text.contains('\u{1b}'), "{text:?}");
        }
    }
}

#[test]
fn nothing_that_a_plugin_says_makes_a_field_of_json() {
    for nasty in NASTY {
        let written = logged(LogFormat::Json, false, || plugin_says(nasty, &[(nasty, nasty), ("level", "ERROR")]));
        assert_eq!(written.matches('\n').count(), 1, "{written:?}");
        let json: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&written).unwrap();
        let keys: Vec<&str> = json.keys().map(String::as_str).collect();
        let expected = ["fields", "level", "message", "offset", "partition", "processor", "target", "timestamp"];
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{written:?}");
        assert_eq!((&json["level"], &json["message"]), (&"INFO".into(), &(*nasty).into()), "byte for byte");
    }
}
