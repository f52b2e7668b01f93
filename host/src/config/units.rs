//! Durations and sizes as settings are written: a whole number and its unit.

use std::time::Duration;

const DURATIONS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// `"100ms"`, `"1s"`, `"5m"`, `"2h"`. `None` where number or unit is missing or unknown, or the product does not fit.
pub fn parse_duration(text: &str) -> Option<Duration> {
    scaled(text, DURATIONS).map(Duration::from_millis)
}

/// `"64MiB"`, `"1GB"`; binary and decimal units. In bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    scaled(text, SIZES)
}

/// A share such as `"20%"` or `"0.5%"`, in percent.
pub fn parse_percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    number.parse().ok().filter(|_| digits)
}

/// A rate such as `"10/s"`, `"100/m"` or `"5/h"`: how many, and in what time.
pub fn parse_rate(text: &str) -> Option<(u64, Duration)> {
    let (count, unit) = text.split_once('/')?;
    let (_, ms) = DURATIONS[1..].iter().find(|(name, _)| *name == unit)?;
    let digits = count.bytes().all(|byte| byte.is_ascii_digit());
    Some((count.parse().ok().filter(|_| digits)?, Duration::from_millis(*ms)))
}

/// The duration in its largest whole unit.
pub fn show_duration(duration: Duration) -> String {
    show(duration.as_millis() as u64, &DURATIONS[..3])
}

/// The size in its largest whole binary unit.
pub fn show_size(bytes: u64) -> String {
    show(bytes, &[SIZES[0], SIZES[4], SIZES[5], SIZES[6]])
}

/// The duration that was meant where the unit's case is wrong, such as `10S`.
pub(super) fn mend_duration(text: &str) -> Option<String> {
    mend(text, DURATIONS)
}

/// The size that was meant where the unit's case is wrong, such as `64mib`.
pub(super) fn mend_size(text: &str) -> Option<String> {
    mend(text, SIZES)
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split(text)?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*scale)
}

fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn show(amount: u64, units: &[(&str, u64)]) -> String {
    let fits = |&&(_, scale): &&(&str, u64)| amount.is_multiple_of(scale) && amount >= scale;
    let (name, scale) = units.iter().rev().find(fits).copied().unwrap_or(units[0]);
    format!("{}{name}", amount / scale)
}

fn mend(text: &str, units: &[(&str, u64)]) -> Option<String> {
    let (number, unit) = split(text)?;
    let (name, _) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    Some(format!("{number}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_required_and_exact() {
        assert_eq!(parse_duration("100ms"), Some(Duration::from_millis(100)));
        assert_eq!(parse_duration("5m"), Some(Duration::from_secs(300)));
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size("1GB"), Some(1_000_000_000));
        for wrong in
            ["", "10", "s", "1.5s", "-1s", "10 s", "10S", "1d", "99999999999999999999s", "18446744073709551615s"]
        {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        for wrong in ["", "64", "64mib", "64M", "64 MiB", "18446744073709551615GiB"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shares_and_rates_have_their_unit() {
        assert_eq!([parse_percent("20%"), parse_percent("0.5%")], [Some(20.0), Some(0.5)]);
        assert_eq!(parse_rate("10/s"), Some((10, Duration::from_secs(1))));
        assert_eq!(parse_rate("5/h"), Some((5, Duration::from_secs(3600))));
        for wrong in ["", "20", "%", "20 %", "-1%", "nan%", "inf%", "1e1%", "1.2.3%"] {
            assert_eq!(parse_percent(wrong), None, "{wrong}");
        }
        for wrong in ["", "/s", "10", "10/", "10/ms", "10/d", "10 / s", "+1/s", "1.5/s", "99999999999999999999/s"] {
            assert_eq!(parse_rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shown_in_the_largest_whole_unit() {
        assert_eq!(show_duration(Duration::from_millis(1500)), "1500ms");
        assert_eq!(show_duration(Duration::from_secs(120)), "2m");
        assert_eq!(show_duration(Duration::ZERO), "0ms");
        assert_eq!(show_size(64 << 20), "64MiB");
        assert_eq!(show_size(1000), "1000B");
    }
}
