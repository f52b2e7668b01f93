//! Whether a version can take over the stores of another.

use crate::model::manifest::{Scope, StoreSpec};
use serde::{Deserialize, Serialize};

/// A store as a record remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    pub name: String,
    pub partition_scope: bool,
    pub codec: String,
    pub schema_version: u32,
    /// The oldest schema version that can be read.
    pub reads_from: u32,
}

impl Schema {
    pub fn of(stores: &[StoreSpec]) -> Vec<Schema> {
        let schema = |spec: &StoreSpec| Schema {
            name: spec.name.clone(),
            partition_scope: spec.scope == Scope::Partition,
            codec: spec.codec.clone(),
            schema_version: spec.schema_version,
            reads_from: spec.reads_from,
        };
        stores.iter().map(schema).collect()
    }
}

/// Why `new` cannot read what `running` has written, as far as they share stores.
pub fn fits(running: &[Schema], new: &[Schema]) -> Result<(), String> {
    let shared = |old: &&Schema| new.iter().any(|store| store.name == old.name);
    running.iter().filter(shared).try_for_each(|old| {
        let Some(new) = new.iter().find(|store| store.name == old.name) else { return Ok(()) };
        readable(old, new).map_err(|problem| format!("store {}: {problem}", old.name))
    })
}

fn readable(old: &Schema, new: &Schema) -> Result<(), String> {
    if old.partition_scope != new.partition_scope {
        return Err("its scope has changed".to_owned());
    }
    if old.codec != new.codec {
        return Err(format!("it is kept as {}, the new version wants {}", old.codec, new.codec));
    }
    if (new.reads_from..=new.schema_version).contains(&old.schema_version) {
        return Ok(());
    }
    let (running, from, to) = (old.schema_version, new.reads_from, new.schema_version);
    Err(format!("it has schema version {running}, the new version reads {from} to {to}"))
}

/// Why `new` has not the same stores as `running`: what is new has no history, and what is gone would miss what comes.
pub fn same_stores(running: &[Schema], new: &[Schema]) -> Result<(), String> {
    let lacks = |all: &[Schema], store: &Schema| all.iter().all(|known| known.name != store.name);
    if let Some(store) = new.iter().find(|store| lacks(running, store)) {
        return Err(format!("store {} is not there yet", store.name));
    }
    match running.iter().find(|store| lacks(new, store)) {
        Some(store) => Err(format!("store {} is no more", store.name)),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn store(name: &str, reads_from: u32, schema_version: u32) -> Schema {
        Schema { name: name.into(), partition_scope: false, codec: "u64".into(), schema_version, reads_from }
    }

    #[test]
    fn a_schema_must_be_one_that_is_read() {
        let running = [store("a", 1, 2)];
        for (from, to, fit) in [(2, 2, true), (1, 3, true), (3, 3, false), (1, 1, false)] {
            assert_eq!(fits(&running, &[store("a", from, to)]).is_ok(), fit, "{from} to {to}");
        }
        let other = Schema { codec: "json".into(), ..store("a", 1, 2) };
        assert!(
            fits(&running, &[other]).unwrap_err().contains("store a: it is kept as u64, the new version wants json")
        );
        let other = Schema { partition_scope: true, ..store("a", 1, 2) };
        assert!(fits(&running, &[other]).unwrap_err().contains("scope"));
        assert_eq!(
            fits(&running, &[store("b", 9, 9)]),
            Ok(()),
            "a store that is not shared is somebody else's business"
        );
    }

    #[test]
    fn stores_come_and_go_at_a_start_only() {
        let (one, two) = ([store("a", 1, 1)], [store("b", 1, 1), store("a", 1, 1)]);
        assert_eq!(same_stores(&one, &one), Ok(()));
        assert_eq!(same_stores(&two, &[store("a", 1, 1), store("b", 1, 1)]), Ok(()), "in any order");
        assert!(same_stores(&one, &two).unwrap_err().contains("store b is not there yet"));
        assert!(same_stores(&two, &one).unwrap_err().contains("store b is no more"));
    }
}
