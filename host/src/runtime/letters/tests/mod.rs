//! Replays and purges on an embedded log.

mod rig;

pub(crate) use rig::{Dead, Rig};

use super::chunk::{Chunk, Target};
use super::sender::Sender;
use super::*;
use crate::model::HeadersRef;
use crate::model::log::{Delivery, Origin};

fn options() -> ReplayOptions {
    let filter = LetterFilter::default();
    ReplayOptions { filter, limit: u64::MAX, max_replays: 3, through_plugin: false, dry_run: false }
}

fn done(replayed: u64, refused: u64) -> Result<Replayed, Fault> {
    Ok(Replayed { replayed, refused })
}

fn at(offset: i64) -> Place {
    Place { partition: 0, offset }
}

#[test]
fn a_letter_becomes_its_record_again_once() {
    let rig = Rig::new();
    rig.bury(&[Dead::default(), Dead { partition: 0, replays: 1, ..Dead::default() }]);
    assert_eq!(rig.replay(options()), (done(2, 0), vec![]));
    let headers =
        |replays: &str| vec![("own".to_owned(), "1".to_owned()), ("pelton-replays".to_owned(), replays.to_owned())];
    let expected = [(0, "v".to_owned(), 77, headers("2")), (1, "v".to_owned(), 77, headers("1"))];
    assert_eq!(rig.read("in"), expected, "own headers and time, the partition that it came from, one count");
    assert_eq!(rig.replay(options()), (done(0, 0), vec![]));
    assert_eq!(rig.read("in").len(), 2);
    rig.bury(&[Dead { value: b"later", ..Dead::default() }]);
    assert_eq!(rig.replay(options()), (done(1, 0), vec![]));
    assert_eq!(rig.values("in"), ["v", "v", "later"]);
}

#[test]
fn many_letters_go_in_several_transactions() {
    let rig = Rig::new();
    let values: Vec<String> = (0..1201).map(|i| i.to_string()).collect();
    let letters: Vec<Dead<'_>> = values.iter().map(|v| Dead { value: v.as_bytes(), ..Dead::default() }).collect();
    rig.bury(&letters);
    assert_eq!(rig.replay(options()).0, done(1201, 0));
    assert_eq!(rig.values("in"), values);
}

#[test]
fn what_cannot_be_replayed_stays_and_says_why() {
    let rig = Rig::new();
    rig.create("elsewhere", 1, &[]);
    let long = [b'x'; 990];
    rig.bury(&[
        Dead { replays: 3, ..Dead::default() },
        Dead { cut: 1, ..Dead::default() },
        Dead { topic: "elsewhere", partition: 0, ..Dead::default() },
        Dead { partition: 2, ..Dead::default() },
        Dead { processor: "q", ..Dead::default() },
        Dead { value: &long, ..Dead::default() },
        Dead { value: b"fine", replays: 2, ..Dead::default() },
    ]);
    let stays = ["replay-limit", "truncated", "source-gone", "source-gone"].into_iter().enumerate();
    let mut stays: Vec<(Place, String)> = stays.map(|(offset, code)| (at(offset as i64), code.to_owned())).collect();
    stays.push((at(5), "output-too-large".to_owned()));
    assert_eq!(rig.replay(options()), (done(1, 5), stays.clone()));
    assert_eq!((rig.values("in"), rig.values("elsewhere").len()), (vec!["fine".to_owned()], 0));
    assert_eq!(rig.replay(options()), (done(0, 5), stays), "they are met again, and nothing else is");
    let (more, _) = rig.replay(ReplayOptions { max_replays: 4, ..options() });
    assert_eq!(more, done(1, 4));
}

/// A topic may refuse what it would have taken when the replay began.
#[test]
fn what_the_log_refuses_stays_and_the_rest_goes() {
    let rig = Rig::new();
    let letters = rig.letters();
    let mut sender = Sender::open(&letters, &["in".into()]).unwrap();
    let (mut chunk, long) = (Chunk::default(), [b'x'; 1000]);
    for (offset, value) in [(0, &b"a"[..]), (1, &long), (2, b"b"), (3, &long)] {
        let record = RecordRef { key: None, value: Some(value), headers: HeadersRef::default(), timestamp: 1 };
        chunk.add(at(offset), "in/0".into());
        chunk.push(Target { topic: 0, partition: Some(0) }, record);
    }
    sender.commit(&mut chunk).unwrap();
    assert_eq!(rig.values("in"), ["a", "b"]);
    let stays: Vec<Option<String>> = chunk.take().into_iter().map(|letter| letter.refused.map(|f| f.code)).collect();
    let large = || Some("output-too-large".to_owned());
    assert_eq!(stays, [None, large(), None, large()]);
    let marks = letters.marks(true).unwrap();
    assert_eq!([0, 1, 2, 3].map(|offset| marks.get(at(offset)).is_some()), [true, false, true, false]);
}

#[test]
fn filters_and_the_limit_choose() {
    let rig = Rig::new();
    let codes = ["a", "b", "a", "a"];
    rig.bury(&codes.map(|code| Dead { code, value: code.as_bytes(), ..Dead::default() }));
    let only_a = || LetterFilter { codes: vec!["a".into()], ..LetterFilter::default() };
    assert_eq!(rig.replay(ReplayOptions { filter: only_a(), limit: 2, ..options() }).0, done(2, 0));
    assert_eq!(rig.values("in"), ["a", "a"]);
    let first = LetterFilter { places: vec![at(0), at(1)], ..LetterFilter::default() };
    assert_eq!(rig.replay(ReplayOptions { filter: first, ..options() }).0, done(1, 0));
    assert_eq!(rig.values("in"), ["a", "a", "b"]);
    assert_eq!(rig.replay(ReplayOptions { filter: only_a(), ..options() }).0, done(1, 0));
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let rig = Rig::new();
    rig.bury(&[Dead::default(), Dead { replays: 3, ..Dead::default() }]);
    let mut told = vec![];
    let dry = ReplayOptions { dry_run: true, ..options() };
    let outcome = rig.letters().replay(&dry, &mut |event| match event {
        Event::Replayed { place, to } => told.push((place, to.to_owned())),
        Event::Refused { place, failure } => told.push((place, failure.code.clone())),
        Event::Passed(_) => {}
    });
    assert_eq!(outcome, done(1, 1));
    told.sort();
    assert_eq!(told, [(at(0), "in/1".to_owned()), (at(1), "replay-limit".to_owned())]);
    assert!(rig.values("in").is_empty());
    assert!(rig.log.topic("dead-replayed").unwrap().is_none());
}

/// The second begins when the first has planned and not yet committed.
#[test]
fn a_second_replay_takes_over_from_the_first() {
    let rig = Rig::new();
    let values: Vec<String> = (0..700).map(|i| i.to_string()).collect();
    let letters: Vec<Dead<'_>> = values.iter().map(|v| Dead { value: v.as_bytes(), ..Dead::default() }).collect();
    rig.bury(&letters);
    let mut second = None;
    let first = rig.letters().replay(&options(), &mut |event| {
        if matches!(event, Event::Passed(_)) && second.is_none() {
            second = Some(rig.replay(options()).0);
        }
    });
    assert_eq!(second, Some(done(200, 0)), "what the first had committed is not done again");
    let fault = first.unwrap_err();
    assert_eq!((fault.verdict, fault.code), (crate::model::Verdict::Fenced, "replay-superseded"));
    assert!(fault.message.contains("after 500 letters"), "{fault}");
    assert_eq!(rig.values("in"), values);
}

#[test]
fn marks_of_a_topic_that_was_made_again_say_nothing() {
    let rig = Rig::new();
    rig.bury(&[Dead::default(), Dead::default()]);
    assert_eq!(rig.replay(options()).0, done(2, 0));
    rig.log.delete_topic("dead").unwrap();
    rig.create("dead", 1, &[]);
    rig.bury(&[Dead { value: b"new", ..Dead::default() }]);
    assert_eq!(rig.replay(options()).0, done(1, 0));
    assert_eq!(rig.values("in"), ["v", "v", "new"]);
}

#[test]
fn a_topic_of_marks_that_would_forget_is_refused() {
    for properties in [&[][..], &[("cleanup.policy", "compact,delete")]] {
        let rig = Rig::new();
        rig.create("dead-replayed", 1, properties);
        rig.bury(&[Dead::default()]);
        assert_eq!(rig.replay(options()).0.unwrap_err().code, "marks-topic-unfit");
        assert!(rig.values("in").is_empty());
    }
}

#[test]
fn a_mark_that_cannot_be_read_stops_everything() {
    let rig = Rig::new();
    rig.bury(&[Dead::default()]);
    rig.create("dead-replayed", 1, &[("cleanup.policy", "compact")]);
    let mut producer = rig.log.producer("other", Delivery::ExactlyOnce).unwrap();
    let to = producer.topic("dead-replayed").unwrap();
    producer.begin().unwrap();
    let record = RecordRef { key: Some(b"0:0"), value: Some(b"?"), headers: HeadersRef::default(), timestamp: 1 };
    producer.send(to, Some(0), record, Origin { slot: 0, input: 0, offset: 0 }).unwrap();
    producer.commit().unwrap();
    assert_eq!(rig.replay(options()).0.unwrap_err().code, "mark-unreadable");
}

#[test]
fn names_that_are_not_there_are_told() {
    let rig = Rig::new();
    let open = |processor: &str| Letters::open(&rig.log, &rig.application, processor).map(|_| ()).unwrap_err();
    let fault = open("pp");
    assert_eq!((fault.code, fault.hint.as_deref()), ("processor-unknown", Some("it has: p, q")));
    rig.log.delete_topic("dead").unwrap();
    assert_eq!(open("p").code, "topic-missing");
}

#[test]
fn one_letter_is_found_by_its_place() {
    let rig = Rig::new();
    rig.bury(&[Dead::default(), Dead { processor: "q", ..Dead::default() }, Dead { code: "third", ..Dead::default() }]);
    let find = |partition, offset| {
        let mut code = None;
        let place = Place { partition, offset };
        let found = rig.letters().find::<Fault>(place, &mut |letter| {
            code = Some(letter.reason.code.clone());
            Ok(())
        });
        found.map(|()| code.unwrap()).map_err(|fault| fault.code)
    };
    assert_eq!(find(0, 2), Ok("third".to_owned()));
    for (partition, offset) in [(0, 1), (0, 3), (0, -1), (1, 0), (-1, 0)] {
        assert_eq!(find(partition, offset), Err("letter-missing"), "{partition}:{offset}");
    }
}

#[test]
fn a_purge_stops_at_what_is_to_stay() {
    let rig = Rig::new();
    let times = [10, 20, 30, 20, 40];
    rig.bury(&times.map(|failed_at| Dead { failed_at, ..Dead::default() }));
    rig.replay(ReplayOptions { limit: 1, ..options() }).0.unwrap();
    let purge = |before, dry_run| rig.letters().purge(PurgeOptions { before, dry_run }, &mut |_| ()).unwrap();
    let start = || rig.log.ends(&TopicPartition::new("dead", 0)).unwrap().start;
    let expected = Purged { purged: 2, unreplayed: 1, behind: 1 };
    assert_eq!((purge(Some(30), true), start()), (expected, 0), "a dry run deletes nothing");
    assert_eq!((purge(Some(30), false), start()), (expected, 2));
    let rest = Purged { purged: 3, unreplayed: 3, behind: 0 };
    assert_eq!((purge(None, false), start()), (rest, 5));
    assert_eq!(purge(None, false), Purged::default());
}

#[test]
fn a_purge_leaves_what_others_have_in_the_topic() {
    let rig = Rig::new();
    rig.bury(&[Dead::default(), Dead { processor: "q", ..Dead::default() }, Dead::default()]);
    let purged = rig.letters().purge(PurgeOptions { before: None, dry_run: false }, &mut |_| ()).unwrap();
    assert_eq!(purged, Purged { purged: 1, unreplayed: 1, behind: 1 });
    assert_eq!(rig.values("dead").len(), 2);
    assert_eq!(rig.replay(options()).0, done(1, 0));
}

#[test]
fn a_purge_clears_the_marks_of_what_is_gone() {
    let rig = Rig::new();
    rig.bury(&[Dead::default(), Dead::default(), Dead { failed_at: 5000, ..Dead::default() }]);
    assert_eq!(rig.replay(options()).0, done(3, 0));
    rig.letters().purge(PurgeOptions { before: Some(2000), dry_run: false }, &mut |_| ()).unwrap();
    let marks = rig.letters().marks(true).unwrap();
    assert_eq!((marks.get(at(0)), marks.get(at(1)), marks.get(at(2)).is_some()), (None, None, true));
    assert!(marks.stale(&[2]).is_empty(), "nothing is left to clear");
    assert_eq!(rig.replay(options()).0, done(0, 0));
}

#[test]
fn a_purge_ends_a_replay_that_is_at_it() {
    let rig = Rig::new();
    rig.bury(&[Dead::default()]);
    let first = rig.letters().replay(&options(), &mut |event| {
        if matches!(event, Event::Passed(_)) {
            rig.letters().purge(PurgeOptions { before: None, dry_run: false }, &mut |_| ()).unwrap();
        }
    });
    assert_eq!(first.unwrap_err().code, "replay-superseded");
    assert!(rig.values("in").is_empty() && rig.values("dead").is_empty());
}
