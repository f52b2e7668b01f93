//! What a task's stores remember beside their data: how far they are, of which topics, and for which plugin.

use super::faults;
use crate::model::Fault;
use crate::model::manifest::{Scope, StoreSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// First byte of the encoding. A state folder of another version is rebuilt from the changelog.
const VERSION: u8 = 1;

/// Positions that a commit has reached: they go into the write batch of its data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Applied<'a> {
    /// For each store, one past the last changelog record of this commit; `None` where it wrote nothing.
    pub changelogs: &'a [Option<i64>],
    /// Input topic and the next offset to read.
    pub inputs: &'a [(&'a str, i64)],
}

/// Everything a task's stores remember, as of the last write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedState {
    /// By store name. Stores that the plugin no longer has keep theirs.
    pub stores: BTreeMap<String, StoreState>,
    /// Input topic and the next offset to read.
    pub inputs: BTreeMap<String, i64>,
    /// When the stores were opened last, in milliseconds since the epoch.
    pub opened_ms: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreState {
    /// `None`: the data, if any, stands for no point of any changelog and must not be used.
    pub changelog: Option<Position>,
    /// A moment when the store held all that its changelog had (or when its rebuild from the changelog's start began), in
    /// milliseconds since the epoch. A tombstone that was cleaned away since may be missed by going on from here.
    pub seen_ms: i64,
    pub partition_scope: bool,
    pub codec: String,
    pub schema_version: u32,
}

/// How far a store is in its changelog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Tells a recreated topic from the one that was meant.
    pub topic_id: String,
    /// The next offset to read.
    pub offset: i64,
}

impl AppliedState {
    pub(super) fn encode(&self) -> Result<Vec<u8>, Fault> {
        postcard::to_extend(self, vec![VERSION])
            .map_err(|error| Fault::fatal("state-encoding", format!("applied offsets cannot be written: {error}")))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<AppliedState, Fault> {
        match bytes.split_first() {
            Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(|error| unreadable(&error.to_string())),
            Some((version, _)) => Err(unreadable(&format!("version {version}, this program reads {VERSION}"))),
            None => Err(unreadable("empty")),
        }
    }

    /// Takes over the stores of a plugin. `Fatal` `store-incompatible` where it does not read what is there.
    pub(super) fn adopt(&mut self, specs: &[StoreSpec]) -> Result<(), Fault> {
        for spec in specs {
            if let Some(state) = self.stores.get(&spec.name).filter(|state| state.changelog.is_some()) {
                check(spec, state)?;
            }
        }
        for spec in specs {
            let state = self.stores.entry(spec.name.clone()).or_default();
            state.partition_scope = spec.scope == Scope::Partition;
            state.codec.clone_from(&spec.codec);
            state.schema_version = spec.schema_version;
        }
        Ok(())
    }

    pub(super) fn advance(&mut self, specs: &[StoreSpec], applied: &Applied<'_>, now_ms: i64) {
        for (i, spec) in specs.iter().enumerate() {
            let Some(state) = self.stores.get_mut(&spec.name) else { continue };
            state.seen_ms = now_ms;
            if let (Some(position), Some(&Some(offset))) = (&mut state.changelog, applied.changelogs.get(i)) {
                position.offset = offset;
            }
        }
        for &(topic, offset) in applied.inputs {
            match self.inputs.get_mut(topic) {
                Some(known) => *known = offset,
                None => drop(self.inputs.insert(topic.to_owned(), offset)),
            }
        }
    }
}

fn check(spec: &StoreSpec, state: &StoreState) -> Result<(), Fault> {
    let (name, version) = (&spec.name, state.schema_version);
    let problem = if state.partition_scope != (spec.scope == Scope::Partition) {
        "the scope has changed".to_owned()
    } else if state.codec != spec.codec {
        format!("it is kept as {}, the plugin wants {}", state.codec, spec.codec)
    } else if !(spec.reads_from..=spec.schema_version).contains(&version) {
        format!("it has schema version {version}, the plugin reads {} to {}", spec.reads_from, spec.schema_version)
    } else {
        return Ok(());
    };
    Err(Fault::fatal("store-incompatible", format!("store {name} does not fit the plugin: {problem}"))
        .hint("run the plugin version that wrote it, or give the store a new name"))
}

fn unreadable(what: &str) -> Fault {
    faults::corrupt(&format!("applied offsets cannot be read: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;

    fn spec(schema_version: u32, reads_from: u32) -> StoreSpec {
        StoreSpec { name: "s".into(), scope: Scope::Key, codec: "raw".into(), schema_version, reads_from }
    }

    fn running() -> AppliedState {
        let mut state = AppliedState::default();
        state.adopt(&[spec(3, 2)]).unwrap();
        state.stores.get_mut("s").unwrap().changelog = Some(Position { topic_id: "t".into(), offset: 7 });
        state
    }

    #[test]
    fn the_running_schema_must_be_within_what_the_plugin_reads() {
        for (schema_version, reads_from, fits) in [(3, 3, true), (4, 3, true), (4, 4, false), (2, 1, false)] {
            let result = running().adopt(&[spec(schema_version, reads_from)]);
            assert_eq!(result.is_ok(), fits, "{schema_version} from {reads_from}");
        }
    }

    #[test]
    fn scope_and_codec_are_fixed() {
        let other_scope = StoreSpec { scope: Scope::Partition, ..spec(3, 3) };
        let other_codec = StoreSpec { codec: "json".into(), ..spec(3, 3) };
        for other in [other_scope, other_codec] {
            let fault = running().adopt(&[other]).unwrap_err();
            assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "store-incompatible"));
        }
    }

    #[test]
    fn a_refused_plugin_changes_nothing() {
        let mut state = running();
        let new = StoreSpec { name: "new".into(), ..spec(1, 1) };
        state.adopt(&[new, spec(9, 9)]).unwrap_err();
        assert_eq!(state, running());
    }

    #[test]
    fn the_encoding_names_its_version() {
        let bytes = running().encode().unwrap();
        assert_eq!(AppliedState::decode(&bytes).unwrap(), running());
        let mut other = bytes.clone();
        other[0] = 2;
        for broken in [&other[..], &bytes[..5], b""] {
            assert_eq!(AppliedState::decode(broken).unwrap_err().verdict, Verdict::Corrupt);
        }
    }
}
