//! Moments as people write and read them. Always UTC, so that two operators see the same.

use crate::config::units::parse_duration;

const DAY: i64 = 86_400_000;
const HOUR: i64 = 3_600_000;
const MINUTE: i64 = 60_000;

/// A moment, or so long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Milliseconds since the epoch.
    At(i64),
    /// Milliseconds before now.
    Ago(i64),
}

impl When {
    /// As a moment, in milliseconds since the epoch.
    pub(super) fn at(self, now: i64) -> i64 {
        match self {
            When::At(ms) => ms,
            When::Ago(ms) => now.saturating_sub(ms),
        }
    }
}

/// Reads `2026-03-01`, `2026-03-01T10:30`, `…:30:15.250`, each with `Z` or `+02:00` behind a time; milliseconds since the epoch; or
/// `90s`, `15m`, `2h`, `3d` for so long ago.
pub(super) fn parse(text: &str) -> Result<When, String> {
    let found = moment(text).or_else(|| ago(text));
    found.ok_or_else(|| {
        "write 2026-03-01, 2026-03-01T10:30:00Z, milliseconds since the epoch, or so long ago: 90s, 15m, 2h, 3d"
            .to_owned()
    })
}

/// `2026-03-01T10:30:15.250Z`; what lies outside the years 1 to 9999 as the number that it is.
pub(super) fn show(ms: i64) -> String {
    let (year, month, day) = date_of(ms.div_euclid(DAY));
    if !(1..=9999).contains(&year) {
        return ms.to_string();
    }
    let rest = ms.rem_euclid(DAY);
    let (hour, minute, second) = (rest / HOUR, rest / MINUTE % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

fn moment(text: &str) -> Option<When> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(When::At);
    }
    let (date, time) = text.split_once(['T', 't', ' ']).map_or((text, None), |(date, time)| (date, Some(time)));
    let day = day_of_text(date)?;
    let within = time.map_or(Some(0), time_of_day)?;
    Some(When::At(day * DAY + within))
}

fn ago(text: &str) -> Option<When> {
    if let Some(days) = text.strip_suffix('d') {
        return number(days)?.checked_mul(DAY).map(When::Ago);
    }
    let ago = parse_duration(text)?;
    i64::try_from(ago.as_millis()).ok().map(When::Ago)
}

fn day_of_text(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (fixed(parts.next()?, 4)?, fixed(parts.next()?, 2)?, fixed(parts.next()?, 2)?);
    let days = day_number(year, month, day);
    // what is no day of the calendar, as 30 February, comes back as another
    (parts.next().is_none() && (1..=12).contains(&month) && date_of(days) == (year, month, day)).then_some(days)
}

/// Milliseconds since midnight in UTC: negative, or more than a day, where the offset leads there.
fn time_of_day(text: &str) -> Option<i64> {
    let at = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(at);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let parts: Vec<i64> = clock.split(':').map(|part| fixed(part, 2)).collect::<Option<_>>()?;
    let (hour, minute, second) = match (&parts[..], fraction) {
        ([hour, minute], None) => (*hour, *minute, 0),
        ([hour, minute, second], _) => (*hour, *minute, *second),
        _ => return None,
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let ms = fraction.map_or(Some(0), milliseconds)?;
    Some(hour * HOUR + minute * MINUTE + second * 1000 + ms - offset(zone)?)
}

fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') => return (zone.len() <= 1).then_some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    Some(sign * (fixed(hours, 2)? * HOUR + fixed(minutes, 2)? * MINUTE))
}

/// The first three digits of a fraction of a second.
fn milliseconds(fraction: &str) -> Option<i64> {
    number(fraction)?;
    fixed(&format!("{fraction:0<3}")[..3], 3)
}

fn fixed(text: &str, digits: usize) -> Option<i64> {
    number(text).filter(|_| text.len() == digits)
}

fn number(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Days since 1970-01-01 in the Gregorian calendar, years counted from March so that the leap day is the last
/// (<https://howardhinnant.github.io/date_algorithms.html>).
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a day number.
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * from_march + 2) / 5 + 1, (from_march + 2) % 12 + 1);
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_every_form() {
        let expected = 1_772_361_015_250;
        for text in [
            "2026-03-01T10:30:15.250Z",
            "2026-03-01 10:30:15.25",
            "2026-03-01t12:30:15.2509+02:00",
            "2026-02-28T23:00:15.250-11:30",
            "1772361015250",
        ] {
            assert_eq!(parse(text), Ok(When::At(expected)), "{text}");
        }
        assert_eq!(parse("2026-03-01T10:30"), Ok(When::At(expected - 15_250)));
        assert_eq!(parse("1970-01-01"), Ok(When::At(0)));
        assert_eq!(parse("15m").map(|when| when.at(1_000_000)), Ok(100_000));
        assert_eq!(parse("3d"), Ok(When::Ago(3 * DAY)));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        let days =
            ["", "yesterday", "2026-3-1", "2026-02-29", "2026-13-01", "2026-00-10", "2026-03-01-01", "2026-03-ä1"];
        let clocks =
            ["", "24:00", "10", "10:30:60", "10:30.5", "10:30+2", "10:30ZZ", "10:30:15.", "10:30+ä:00", "10:30:15.ää"];
        let others = ["-5", "1.5h", "9223372036854775808", "d", "99999999999999999d"];
        let clocks = clocks.map(|clock| format!("2026-03-01T{clock}"));
        let all = days.into_iter().chain(others).chain(clocks.iter().map(String::as_str));
        all.for_each(|wrong| assert!(parse(wrong).is_err(), "{wrong}"));
        assert_eq!(parse("2026"), Ok(When::At(2026)), "a bare number is milliseconds");
    }

    #[test]
    fn what_is_shown_is_read() {
        for ms in
            [0, 1, 951_782_400_000, 951_868_799_999, 1_772_361_015_250, 253_402_300_799_999, -1, -62_135_596_800_000]
        {
            assert_eq!(parse(&show(ms)), Ok(When::At(ms)), "{}", show(ms));
        }
        assert_eq!(show(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(show(i64::MAX), i64::MAX.to_string());
    }
}
