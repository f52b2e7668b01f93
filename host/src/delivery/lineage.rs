//! What a committed offset says of the topics that it goes with, so that a start on others of the same names is noticed: the input
//! that it counts in, and the changelogs that hold what was made of the records before it.

use std::fmt::Write;

/// Ids of topics (KIP-516), which change when a topic is deleted and created again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    pub input: String,
    /// Per store its name and the id of its changelog.
    pub changelogs: Vec<(String, String)>,
}

const INPUT: &str = "t";
const CHANGELOGS: &str = "c";

impl Lineage {
    /// Fields of the metadata beside an offset, behind what else it says: `t=ID;c=STORE:ID,STORE:ID`.
    pub fn encode(&self) -> String {
        let mut text = format!("{INPUT}={}", self.input);
        for (at, (store, id)) in self.changelogs.iter().enumerate() {
            let before = if at == 0 { format!(";{CHANGELOGS}=") } else { ",".to_owned() };
            let _ = write!(text, "{before}{store}:{id}");
        }
        text
    }

    /// What metadata says; `None` where it says nothing of topics, as where a person has reset the group.
    pub fn decode(metadata: &str) -> Option<Lineage> {
        let field = |name: &str| super::attempts::field(metadata, name);
        let changelogs = field(CHANGELOGS).into_iter().flat_map(|all| all.split(','));
        let pair = |pair: &str| pair.split_once(':').map(|(store, id)| (store.to_owned(), id.to_owned()));
        Some(Lineage { input: field(INPUT)?.to_owned(), changelogs: changelogs.filter_map(pair).collect() })
    }

    /// The id of a store's changelog.
    pub fn changelog(&self, store: &str) -> Option<&str> {
        self.changelogs.iter().find(|(name, _)| name == store).map(|(_, id)| id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempts::beside;
    use super::*;

    fn some(stores: &[(&str, &str)]) -> Lineage {
        let changelogs = stores.iter().map(|(store, id)| (store.to_string(), id.to_string())).collect();
        Lineage { input: "Y2Fu+/_-A".into(), changelogs }
    }

    #[test]
    fn what_is_written_is_read() {
        for stores in [&[][..], &[("counts", "a+b")], &[("counts", "a/b"), ("pelton-parked", "c")]] {
            let lineage = some(stores);
            for (note, parked) in [("", 0), ("", 7), ("pelton1;o=7;n=3;f=10;l=20;d=30", 7)] {
                let text = beside(note, parked, &lineage.encode());
                assert_eq!(Lineage::decode(&text).as_ref(), Some(&lineage), "{text}");
                assert_eq!(super::super::parked(&text), parked);
            }
        }
        assert_eq!(some(&[("counts", "x"), ("b", "y")]).encode(), "t=Y2Fu+/_-A;c=counts:x,b:y", "the text is fixed");
    }

    #[test]
    fn others_words_say_nothing() {
        for text in ["", "t=x", "pelton2;t=x", "pelton1;p=7", "somebody else's"] {
            assert_eq!(Lineage::decode(text), None, "{text}");
        }
    }
}
