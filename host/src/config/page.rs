//! The reference page `docs/settings.md`, made from the table of settings.

use super::schema::{Fallback, Kind, SECTIONS, SETTINGS, Section, Setting};
use std::fmt::Write;

const HEAD: &str = "# Settings

An application is one TOML file. This page is made from the table that the parser checks against (`host/src/config/schema.rs`);
`PELTON_BLESS=1 cargo test -p pelton --lib settings_page` makes it anew.

- A key that is not known is refused, with the nearest known one; so is a key that is set twice, or stands at the wrong level.
- Durations and sizes are text with a unit: `\"100ms\"`, `\"1s\"`, `\"5m\"`, `\"2h\"`; `\"64MiB\"`, `\"1GiB\"` (binary) or `\"64MB\"`, `\"1GB\"` (decimal).
- Relative paths start at the file's folder.
- `${NAME}` in a text stands for an environment variable, which must be set; `$${` is a plain `${`. Keys are taken as they are.
  What a variable holds is never printed. The result is text, so whole numbers and switches cannot come from a variable.
- `pelton check FILE` says everything that is wrong, without running anything.

A whole file:

```toml
";

/// Sections of a processor that a file opens with their own header.
const BELOW_PROCESSOR: [&str; 4] =
    ["processor.limits", "processor.retry", "processor.dead_letter", "processor.parking"];

/// The page as it should stand in `docs/settings.md`.
pub fn settings_page() -> String {
    let mut page = HEAD.to_owned() + &sample() + "```\n";
    for section in SECTIONS {
        let _ = write!(page, "\n## `{}`\n\n{}\n", section.header, section.meaning);
        SETTINGS.iter().filter(|s| in_section(section, s)).for_each(|s| describe(&mut page, section, s));
    }
    page
}

/// A whole file with a value for every setting that Kafka takes.
pub fn sample() -> String {
    let lines = |section: &str| -> String {
        let own = SETTINGS.iter().filter(|s| super::schema::split(s.path).0 == section && s.path != "log.dir");
        own.map(|s| format!("{} = {}\n", super::schema::split(s.path).1, s.example)).collect()
    };
    let processor = lines("processor")
        .replace("settings =", "inputs.orders = \"orders\"\noutputs.counts = \"order-counts\"\nsettings =");
    format!(
        "[application]\n{}\n[admin]\n{}\n[components]\n{}\n[log]\n{}\n[kafka]\n{}\n[topics.orders]\n{}\n[[processor]]\n{processor}{}",
        lines("application"),
        lines("admin"),
        lines("components"),
        lines("log"),
        lines("kafka"),
        lines("topics.<topic>"),
        BELOW_PROCESSOR.map(|section| format!("\n[{section}]\n{}", lines(section))).concat()
    )
}

/// A setting belongs to the longest section that its path begins with.
fn in_section(section: &Section, setting: &Setting) -> bool {
    let covers = |s: &&Section| setting.path.strip_prefix(s.path).is_some_and(|rest| rest.starts_with('.'));
    SECTIONS.iter().filter(covers).max_by_key(|s| s.path.len()).is_some_and(|s| s.path == section.path)
}

fn describe(page: &mut String, section: &Section, setting: &Setting) {
    let name = &setting.path[section.path.len() + 1..];
    let _ = write!(page, "\n### `{name}`\n\n{}", setting.meaning);
    if !setting.trade_off.is_empty() {
        let _ = write!(page, " {}", setting.trade_off);
    }
    let _ = write!(
        page,
        "\n\n- Path: `{}`\n- Type: {}\n- Default: {}\n",
        setting.path,
        kind(setting.kind),
        fallback(setting)
    );
    if !matches!(setting.kind, Kind::Free) {
        let _ = writeln!(page, "- Example: `{name} = {}`", setting.example);
    }
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Name => "text: letters, digits, `.`, `_` and `-`".to_owned(),
        Kind::Topic => "the name of a topic".to_owned(),
        Kind::TopicOrTable => "the name of a topic, or a table with `topic` and `start`".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Switch => "`true` or `false`".to_owned(),
        Kind::Choice(words) => words.iter().map(|w| format!("`\"{w}\"`")).collect::<Vec<_>>().join(" or "),
        Kind::Integer { min, max } => format!("whole number, at least {min}, at most {max}"),
        Kind::Factor { min, max } => format!("number, at least {min}, at most {max}"),
        Kind::Duration { min, max } => format!("duration, at least `\"{min}\"`, at most `\"{max}\"`"),
        Kind::Size { min, max } => format!("size in bytes, at least `\"{min}\"`, at most `\"{max}\"`"),
        Kind::ClientProperties | Kind::StoreProperties | Kind::TopicProperties => {
            "table of names and single values".to_owned()
        }
        Kind::LetterLimit => {
            "share, at least `\"0.1%\"`, at most `\"99.9%\"`, or a rate (`\"10/s\"`, `\"100/m\"`, `\"5/h\"`)".to_owned()
        }
        Kind::Codes => "table of failure codes and `\"retry\"`, `\"dead-letter\"` or `\"stop\"`".to_owned(),
        Kind::Free => "table".to_owned(),
    }
}

fn fallback(setting: &Setting) -> String {
    match setting.fallback {
        Fallback::Required => "none, it must be set".to_owned(),
        Fallback::Without(words) => words.to_owned(),
        Fallback::Value(value) => match setting.kind {
            Kind::Integer { .. } | Kind::Factor { .. } | Kind::Switch => format!("`{value}`"),
            _ => format!("`\"{value}\"`"),
        },
    }
}
