//! The house's rules about its own sources (`ARCHITECTURE.md`), as checks on text: floors, rooms of foreign crates, purpose lines.
//!
//! Comments and strings are blanked first, so words in them never count; test modules may do what only tests may.

/// Rooms with their floors. A room names lower floors only; rooms on one floor do not know each other.
pub const FLOORS: &[(&str, u8)] = &[
    ("model", 0),
    ("config", 1),
    ("metrics", 1),
    ("components", 2),
    ("kafka", 2),
    ("local", 2),
    ("state", 2),
    ("plugin", 2),
    ("changelog", 3),
    ("delivery", 3),
    ("versions", 3),
    ("task", 4),
    ("runtime", 5),
    ("http", 6),
    ("cli", 7),
    ("main", 8),
    ("lib", 8),
];

/// Foreign crates and the rooms that may name them.
pub const FOREIGN: &[(&str, &[&str])] = &[
    ("rdkafka", &["kafka"]),
    ("rdkafka_sys", &["kafka"]),
    ("rocksdb", &["state", "local"]),
    ("wasmtime", &["plugin"]),
    ("wasmtime_wasi", &["plugin"]),
    ("wasmparser", &["plugin"]),
    ("wit_component", &["cli", "plugin"]),
    ("clap", &["cli", "main"]),
    ("anyhow", &["cli", "main"]),
    ("indicatif", &["cli"]),
    ("csv", &["cli"]),
    ("tokio", &["components", "http", "runtime"]),
    ("axum", &["http"]),
    ("axum_server", &["http"]),
    ("reqwest", &["http"]),
    ("openssl", &["http"]),
    ("object_store", &["components"]),
    ("toml", &["config"]),
    ("fail", &["model"]),
    ("tikv_jemallocator", &["main"]),
    ("tracing_subscriber", &["cli", "main"]),
];

/// The metrics crate shares its name with our room, so its macros stand for it.
const METRICS_MACROS: &[&str] = &["counter!", "gauge!", "histogram!", "describe_counter!", "describe_gauge!"];
const THREADS: &[&str] = &["thread::spawn", "thread::Builder", "thread::scope"];
const PRINTS: &[&str] = &["println!", "print!", "eprintln!", "eprint!", "stdout()"];
/// The two files with a reason for `unsafe`: loading our own compiled components, librdkafka calls without a good wrapper.
const UNSAFE_FILES: &[&str] = &["plugin/compiled.rs", "kafka/raw.rs"];
const MOST_LINES: usize = 800;

/// Everything wrong with one file; `path` is relative to `host/src`.
pub fn check(path: &str, source: &str) -> Vec<String> {
    let room = room(path);
    let code = blank(source);
    let product = if is_test_file(path) { String::new() } else { without_tests(&code) };
    let mut wrong = form(source);
    wrong.extend(floors(room, &code));
    wrong.extend(climbs(path, &product));
    wrong.extend(foreign(room, &code));
    wrong.extend(only_in(room, &product, THREADS, &["runtime"], "starts a thread outside runtime/"));
    wrong.extend(only_in(room, &product, PRINTS, &["cli", "main"], "prints outside cli/"));
    wrong.extend(only_in(room, &product, METRICS_MACROS, &["metrics"], "records a metric outside metrics/"));
    if has_word(&code, "unsafe") && !UNSAFE_FILES.contains(&path) {
        wrong.push("`unsafe` outside the two files that may".to_owned());
    }
    wrong.into_iter().map(|what| format!("host/src/{path}: {what}")).collect()
}

/// The room of a path: its first folder, or the file at the top.
pub fn room(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// A purpose line and a size that can be read.
fn form(source: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if !source.starts_with("//!") {
        wrong.push("does not open with a `//!` line of purpose".to_owned());
    }
    let lines = source.lines().count();
    if lines > MOST_LINES {
        wrong.push(format!("{lines} lines, more than {MOST_LINES}"));
    }
    wrong
}

/// Rooms that are unlisted, and names of rooms that are not on a lower floor.
fn floors(room: &str, code: &str) -> Vec<String> {
    let Some(own) = floor(room) else { return vec![format!("room {room} is on no floor")] };
    let upward = |name: &&str| *name != room && floor(name).is_some_and(|f| f >= own);
    crate_names(code)
        .iter()
        .map(String::as_str)
        .filter(upward)
        .map(|n| format!("{room} may not name crate::{n}"))
        .collect()
}

/// `super` that leaves the room, past the rule above.
fn climbs(path: &str, code: &str) -> Option<String> {
    let depth = path.split('/').count() - usize::from(path.ends_with("/mod.rs"));
    let climb = "super::".repeat(depth.max(1));
    let leaves = path.contains('/') && code.contains(&climb);
    leaves.then(|| format!("`{climb}` leaves the room: say crate::"))
}

fn foreign(room: &str, code: &str) -> Vec<String> {
    let away = FOREIGN.iter().filter(|(_, rooms)| !rooms.contains(&room));
    away.filter(|(name, _)| names_crate(code, name)).map(|(name, _)| format!("{room} may not name {name}")).collect()
}

fn only_in(room: &str, code: &str, words: &[&str], rooms: &[&str], what: &str) -> Vec<String> {
    if rooms.contains(&room) {
        return Vec::new();
    }
    words.iter().filter(|w| has_word(code, w)).map(|w| format!("{what}: {w}")).collect()
}

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
}

/// What follows each `crate::`, groups in braces taken apart.
fn crate_names(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        match rest.trim_start().strip_prefix('{') {
            Some(group) => names.extend(group_names(group)),
            None => names.push(ident(rest).to_owned()),
        }
    }
    names
}

/// First names in `a::b, c::{d, e}, f}`, up to the closing brace.
fn group_names(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut fresh) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && is_word(c) => {
                names.push(ident(&group[at..]).to_owned());
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

/// `name::` or `use name` as a crate, not as the end of a longer path.
fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let first = !before.ends_with(is_word)
            && (!before.ends_with("::") || before.trim_end_matches("::").ends_with([' ', '\n', '(', '<']));
        let used = before.trim_end().ends_with("use") && after.starts_with([';', ' ', ':']);
        first && (after.starts_with("::") || used)
    })
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let after = &code[at + word.len()..];
        let (longer_before, longer_after) =
            (code[..at].ends_with(is_word), word.ends_with(is_word) && after.starts_with(is_word));
        !longer_before && !longer_after
    })
}

fn ident(text: &str) -> &str {
    let text = text.trim_start();
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Cuts modules marked `#[cfg(test)]`, up to the brace that closes them.
pub fn without_tests(code: &str) -> String {
    let (mut kept, mut rest) = (String::new(), code);
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        rest = after_item(&rest[at..]);
    }
    kept + rest
}

/// What follows the item that begins here: past its block, or past its semicolon where that comes first.
fn after_item(item: &str) -> &str {
    let (mut depth, mut open) = (0, false);
    for (at, c) in item.char_indices() {
        match c {
            '{' => (depth, open) = (depth + 1, true),
            '}' => depth -= 1,
            ';' if !open => return &item[at + 1..],
            _ => {}
        }
        if open && depth == 0 {
            return &item[at + 1..];
        }
    }
    ""
}

/// The source with comments, strings and char literals replaced by spaces, lines kept.
pub fn blank(source: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(c) = rest.chars().next() {
        match quiet(rest, out.ends_with(is_word)) {
            0 => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
            n => {
                out.extend(rest[..n].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
                rest = &rest[n..];
            }
        }
    }
    out
}

/// Bytes of the comment or literal that begins here; 0 where none does.
fn quiet(text: &str, in_word: bool) -> usize {
    let end_of =
        |from: usize, pattern: &str| text[from..].find(pattern).map_or(text.len(), |n| from + n + pattern.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return end_of(2, "*/");
    }
    if text.starts_with('"') {
        return string(text, 1);
    }
    if text.starts_with('\'') {
        return char_literal(text);
    }
    if in_word {
        return 0;
    }
    let raw = text.trim_start_matches('b').strip_prefix('r').filter(|_| text.starts_with(['b', 'r']));
    let hashes = raw.map_or(0, |r| r.len() - r.trim_start_matches('#').len());
    match raw {
        Some(r) if r[hashes..].starts_with('"') => {
            end_of(text.len() - r.len() + hashes + 1, &format!("\"{}", "#".repeat(hashes)))
        }
        _ => 0,
    }
}

/// Past the quote that closes a plain string.
fn string(text: &str, from: usize) -> usize {
    let mut escaped = false;
    for (at, c) in text[from..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return from + at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `'x'` and `'\n'`, but not the lifetime `'a`.
fn char_literal(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 3),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(path: &str, code: &str) -> usize {
        check(path, &format!("//! Purpose.\n{code}\n")).len()
    }

    #[test]
    fn upward_and_sideways_imports_are_seen() {
        assert_eq!(wrong("state/mod.rs", "use crate::model::Fault;"), 0);
        assert_eq!(wrong("state/mod.rs", "use crate::state::codec;"), 0);
        assert_eq!(wrong("state/mod.rs", "use crate::kafka::Client;"), 1, "sideways");
        assert_eq!(wrong("state/mod.rs", "use crate::task::Task;"), 1, "upward");
        assert_eq!(wrong("state/mod.rs", "fn f() { crate::cli::run() }"), 1, "in an expression");
        assert_eq!(wrong("state/mod.rs", "use crate::{model::{Fault, Verdict}, cli};"), 1, "in a group");
        assert_eq!(wrong("cli/mod.rs", "use crate::{model::Fault, runtime, task::Task};"), 0);
        assert_eq!(wrong("state/deep/x.rs", "use super::super::super::task;"), 1, "past the room");
        assert_eq!(wrong("state/deep/x.rs", "use super::super::codec;"), 0);
        assert_eq!(wrong("state/mod.rs", "use super::task;"), 1);
    }

    #[test]
    fn unlisted_rooms_are_seen() {
        assert_eq!(wrong("utils/mod.rs", ""), 1);
        assert_eq!(wrong("helpers.rs", ""), 1);
        assert_eq!(wrong("main.rs", "fn main() {}"), 0);
    }

    #[test]
    fn foreign_crates_stay_in_their_rooms() {
        assert_eq!(wrong("kafka/mod.rs", "use rdkafka::ClientConfig;"), 0);
        assert_eq!(wrong("task/mod.rs", "use rdkafka::ClientConfig;"), 1);
        assert_eq!(wrong("task/mod.rs", "fn f() -> rocksdb::DB { todo }"), 1);
        assert_eq!(wrong("task/mod.rs", "fn f() -> ::rocksdb::DB { todo }"), 1);
        assert_eq!(wrong("task/mod.rs", "use rdkafka as k;"), 1);
        assert_eq!(wrong("task/mod.rs", "let rdkafka_version = 1; // rdkafka::x\nlet s = \"rdkafka::y\";"), 0);
        assert_eq!(wrong("task/mod.rs", "use crate::model::fail::Point;"), 0, "a module of ours with a crate's name");
        assert_eq!(wrong("task/mod.rs", "counter!(\"x\")"), 1);
    }

    #[test]
    fn threads_prints_and_unsafe_have_their_places() {
        assert_eq!(wrong("runtime/mod.rs", "std::thread::spawn(f);"), 0);
        assert_eq!(wrong("kafka/mod.rs", "std::thread::spawn(f);"), 1);
        assert_eq!(
            wrong("kafka/mod.rs", "#[cfg(test)]\nmod tests { fn f() { std::thread::spawn(f); println!(); } }"),
            0
        );
        assert_eq!(wrong("task/mod.rs", "println!(\"x\");"), 1);
        assert_eq!(wrong("cli/mod.rs", "println!(\"x\");"), 0);
        assert_eq!(wrong("plugin/compiled.rs", "unsafe { f() }"), 0);
        assert_eq!(wrong("plugin/mod.rs", "unsafe { f() }"), 1);
        assert_eq!(wrong("plugin/mod.rs", "let unsafe_code = \"unsafe\"; // unsafe"), 0);
    }

    #[test]
    fn form_is_checked() {
        assert_eq!(check("model/a.rs", "use std::fmt;\n").len(), 1);
        assert_eq!(check("model/a.rs", &format!("//! P.\n{}", "\n".repeat(801))).len(), 1);
    }

    #[test]
    fn blanking_keeps_code_and_lines() {
        let source =
            "let a = 'x'; // c\nlet b: &'a str = r#\"q\"uote\"#; /* d\n */ let c = '\\''; let d = \"\\\"\"; e();";
        let code = blank(source);
        assert_eq!(code.len(), source.len());
        assert_eq!(code.lines().count(), source.lines().count());
        for word in ["let a", "&'a str", "let c", "let d", "e();"] {
            assert!(code.contains(word), "{word} in {code}");
        }
        for word in ["quote", "// c", "'x'", "d\n"] {
            assert!(!code.contains(word), "{word} in {code}");
        }
    }
}
