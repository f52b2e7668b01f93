//! What a committed offset says of the topics that it goes with, so that a start on others of the same names is noticed: the input
//! that it counts in, and the changelogs that hold what was made of the records before it.

use crate::model::fnv;
use std::fmt::Write;

/// Topics by the beginnings of their ids (KIP-516), which change when a topic is deleted and created again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    pub input: String,
    /// Per store its name and the id of its changelog, empty where there is none yet.
    pub changelogs: Vec<(String, String)>,
    /// The same of stores that were there once and are no more: their changelogs have missed what was committed since.
    pub retired: Vec<(String, String)>,
    /// Of the version of the plugin that has worked off what is before the offset; 0 where none was known.
    pub sequence: i64,
}

const INPUT: &str = "t";
const CHANGELOGS: &str = "c";
const RETIRED: &str = "r";
const SEQUENCE: &str = "v";
/// Characters of an id that are kept: 66 bits of base64.
const ID: usize = 11;
/// Bytes of names and ids. Kafka takes 4096 beside an offset (`offset.metadata.max.bytes`), and there is more to say there.
const ROOM: usize = 2500;
/// The most stores that a processor may have, for the same reason.
pub const MOST_STORES: usize = 100;

impl Lineage {
    /// The beginning of a topic's id, which is what is kept of it.
    pub fn id(id: &str) -> String {
        id.chars().take(ID).collect()
    }

    /// Fields of the metadata beside an offset, behind what else it says: `t=ID;c=STORE:ID,STORE:ID;r=STORE:ID;v=SEQUENCE`. Where there is no room
    /// for all names, they are hashes.
    pub fn encode(&self) -> String {
        let text = self.text(str::to_owned);
        if text.len() <= ROOM { text } else { self.text(hashed) }
    }

    fn text(&self, name: fn(&str) -> String) -> String {
        let mut text = format!("{INPUT}={}", self.input);
        for (field, stores) in [(CHANGELOGS, &self.changelogs), (RETIRED, &self.retired)] {
            for (at, (store, id)) in stores.iter().enumerate() {
                let before = if at == 0 { format!(";{field}=") } else { ",".to_owned() };
                let _ = write!(text, "{before}{}:{id}", name(store));
            }
        }
        if self.sequence > 0 {
            let _ = write!(text, ";{SEQUENCE}={}", self.sequence);
        }
        text
    }

    /// What metadata says; `None` where it says nothing of topics, as where a person has reset the group.
    pub fn decode(metadata: &str) -> Option<Lineage> {
        let field = |name: &str| super::attempts::field(metadata, name);
        let pair = |pair: &str| pair.split_once(':').map(|(store, id)| (store.to_owned(), id.to_owned()));
        let pairs = |name: &str| field(name).into_iter().flat_map(|all| all.split(',')).filter_map(pair).collect();
        let sequence = field(SEQUENCE).and_then(|n| n.parse().ok()).unwrap_or(0);
        let input = field(INPUT)?.to_owned();
        Some(Lineage { input, changelogs: pairs(CHANGELOGS), retired: pairs(RETIRED), sequence })
    }

    /// The id of a store's changelog.
    pub fn changelog(&self, store: &str) -> Option<&str> {
        find(&self.changelogs, store)
    }

    /// The id of the changelog that a store had before it was given up.
    pub fn retired(&self, store: &str) -> Option<&str> {
        find(&self.retired, store)
    }

    /// The same, with the stores that `before` knows of and this has no more: they are retired.
    pub fn after(mut self, before: &Lineage) -> Lineage {
        for (store, id) in before.changelogs.iter().chain(&before.retired) {
            let known = |(name, _): &(String, String)| is(name, store);
            if !self.changelogs.iter().any(known) && !self.retired.iter().any(known) {
                self.retired.push((store.clone(), id.clone()));
            }
        }
        self
    }
}

fn find<'l>(stores: &'l [(String, String)], store: &str) -> Option<&'l str> {
    stores.iter().find(|(name, _)| is(store, name)).map(|(_, id)| id.as_str())
}

/// Whether two names, of which each may be a hash, are those of one store.
fn is(one: &str, other: &str) -> bool {
    one == other || hashed(one) == *other || *one == hashed(other)
}

/// A store's name has no `#` in it.
fn hashed(name: &str) -> String {
    match name.starts_with('#') {
        true => name.to_owned(),
        false => format!("#{:08x}", fnv::bytes(name.as_bytes()) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempts::beside;
    use super::*;

    fn pairs(stores: &[(&str, &str)]) -> Vec<(String, String)> {
        stores.iter().map(|(store, id)| (store.to_string(), id.to_string())).collect()
    }

    fn some(stores: &[(&str, &str)], retired: &[(&str, &str)]) -> Lineage {
        Lineage { input: "Y2Fu+/_-A".into(), changelogs: pairs(stores), retired: pairs(retired), sequence: 0 }
    }

    #[test]
    fn what_is_written_is_read() {
        for stores in [&[][..], &[("counts", "a+b")], &[("counts", "a/b"), ("pelton-parked", "c")]] {
            for lineage in [some(stores, &[]), some(stores, &[("old", "o")])] {
                for (note, parked) in [("", 0), ("", 7), ("pelton1;o=7;n=3;f=10;l=20;d=30", 7)] {
                    let text = beside(note, parked, &lineage.encode());
                    assert_eq!(Lineage::decode(&text).as_ref(), Some(&lineage), "{text}");
                    assert_eq!(super::super::parked(&text), parked);
                }
            }
        }
        let text = some(&[("counts", "x"), ("b", "y")], &[("a", "z")]).encode();
        assert_eq!(text, "t=Y2Fu+/_-A;c=counts:x,b:y;r=a:z", "the text is fixed");
        let versioned = Lineage { sequence: 12, ..some(&[("counts", "x")], &[]) };
        assert_eq!(versioned.encode(), "t=Y2Fu+/_-A;c=counts:x;v=12");
        assert_eq!(Lineage::decode(&beside("", 3, &versioned.encode())), Some(versioned));
    }

    #[test]
    fn others_words_say_nothing() {
        for text in ["", "t=x", "pelton2;t=x", "pelton1;p=7", "somebody else's"] {
            assert_eq!(Lineage::decode(text), None, "{text}");
        }
    }

    #[test]
    fn many_stores_with_long_names_fit() {
        let id = Lineage::id("0123456789abcdefghijkl");
        let names: Vec<String> = (0..MOST_STORES).map(|n| format!("{n}-{}", "x".repeat(200))).collect();
        let stores: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &*id)).collect();
        let lineage = some(&stores, &[]);
        let text = lineage.encode();
        assert!(text.len() < 3500, "{}", text.len());
        let read = Lineage::decode(&format!("pelton1;{text}")).unwrap();
        assert!(names.iter().all(|name| read.changelog(name) == Some(&*id)));
        assert_eq!((read.changelog("other"), read.retired(&names[0])), (None, None));
        assert_eq!(lineage.clone().after(&read), lineage, "hashed names are known again");
    }

    #[test]
    fn a_store_that_is_given_up_is_retired_until_it_is_back() {
        let before = some(&[("a", "A"), ("b", "B")], &[("c", "C")]);
        let now = some(&[("b", "B")], &[]).after(&before);
        assert_eq!(now, some(&[("b", "B")], &[("a", "A"), ("c", "C")]));
        assert_eq!(some(&[("a", "N"), ("b", "B"), ("c", "M")], &[]).after(&now).retired, []);
    }
}
