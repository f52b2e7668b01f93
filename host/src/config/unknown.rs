//! What to say of a name that is not known: the nearest one that is, or where this one belongs.

use super::librdkafka;
use super::schema::{self, SETTINGS};

/// The name of `known` that was probably meant by `name`; `None` where nothing is near.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name);
    let scored = known.map(|k| (strsim::damerau_levenshtein(&wanted, &fold(k)), k));
    let (distance, best) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.chars().count() / 3).clamp(1, 4)).then_some(best)
}

/// What to do about `key`, which is not known below `pattern`. `dotted` is the key with the only keys below it, joined.
pub(super) fn remedy(pattern: &str, key: &str, dotted: &str) -> String {
    let here: Vec<&str> = schema::children(pattern).filter(|n| !n.starts_with('<')).collect();
    if let Some(meant) = here.iter().find(|k| fold(k) == fold(key)) {
        return format!("did you mean `{}`?", schema::below(pattern, meant));
    }
    if let Some(place) = belongs(key, dotted) {
        return place;
    }
    if let Some(near) = nearest(key, here.iter().copied()) {
        return format!("did you mean `{}`?", schema::below(pattern, near));
    }
    let everywhere = paths();
    let near = nearest(key, everywhere.iter().map(|p| schema::split(p).1));
    let near = near.and_then(|n| everywhere.iter().find(|p| schema::split(p).1 == n));
    match near {
        Some(path) => format!("did you mean `{path}`?"),
        None => format!("known here: {}", list(&here)),
    }
}

/// Where a name belongs that is known elsewhere.
fn belongs(key: &str, dotted: &str) -> Option<String> {
    let places: Vec<String> = paths().into_iter().filter(|p| fold(schema::split(p).1) == fold(key)).collect();
    if !places.is_empty() {
        let shown: Vec<String> = places.iter().map(|p| place(p)).collect();
        return Some(format!("it belongs elsewhere: {}", shown.join(", or ")));
    }
    let property = [key, dotted].into_iter().find(|name| librdkafka::known().contains(name))?;
    Some(format!("it belongs elsewhere: `kafka.properties`, as \"{property}\" under [kafka.properties]"))
}

fn place(path: &str) -> String {
    let (section, _) = schema::split(path);
    match section {
        "" => format!("`{path}`, at the top of the file"),
        _ => format!("`{path}`, under {}", schema::header(section)),
    }
}

/// The patterns of all settings and of the sections above them, without those that end in a wildcard.
fn paths() -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for setting in SETTINGS {
        let cuts = setting.path.match_indices('.').map(|(i, _)| i).chain([setting.path.len()]);
        all.extend(cuts.map(|i| setting.path[..i].to_owned()).filter(|p| !p.ends_with('>')));
    }
    all.sort();
    all.dedup();
    all
}

fn list(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.dedup();
    names.join(", ")
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}
