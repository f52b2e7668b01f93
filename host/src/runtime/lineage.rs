//! Whether the offsets that a group has committed and the topics of this start belong together. State that is gone while the offsets
//! are past the records it was made of would be begun from nothing, and nobody would be told: refused before anything is made.

use crate::config::Application;
use crate::delivery::{self, Lineage};
use crate::model::log::{Committed, Log, TopicInfo};
use crate::model::{Fault, TopicPartition, ids};
use crate::task::ProcessorSpec;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Topics by name, with those that a start would make: these have no id yet.
type Topics = HashMap<Arc<str>, TopicInfo>;

/// What offsets of the processor's input `topic` go with from now on.
pub(super) fn of(spec: &ProcessorSpec, topics: &Topics, topic: &str) -> Lineage {
    let id = |name: &str| topics.get(name).map(|info| info.id.clone()).unwrap_or_default();
    let stores = spec.all_stores();
    let changelogs = stores.iter().zip(&spec.changelogs).map(|(store, name)| (store.name.clone(), id(name)));
    Lineage { input: id(topic), changelogs: changelogs.collect() }
}

/// Looks at every partition that the processor's group has committed. `Transient` where the cluster does not answer.
///
/// `Fatal`: `state-missing`, `changelog-recreated`, `offset-of-another-topic`.
pub(super) fn check_all(
    log: &dyn Log,
    application: &Application,
    spec: &ProcessorSpec,
    topics: &Topics,
) -> Result<(), Fault> {
    let mut undeclared = BTreeSet::new();
    for input in &spec.inputs {
        let now = of(spec, topics, &input.topic);
        let places: Vec<_> = (0..spec.partitions).map(|p| TopicPartition::new(input.topic.clone(), p)).collect();
        let committed = log.committed(&ids::group(&application.id, &spec.name), &places)?;
        for (place, committed) in places.iter().zip(&committed) {
            Look::of(application, spec, place, &now).check(committed)?;
            let before = Lineage::decode(&committed.metadata).unwrap_or_default().changelogs;
            undeclared
                .extend(before.into_iter().map(|(store, _)| store).filter(|store| now.changelog(store).is_none()));
        }
    }
    for store in undeclared {
        tracing::warn!(processor = %spec.name, store, "the plugin declares this store no more; its changelog stays");
    }
    Ok(())
}

/// One partition, and what its offset would go with.
pub(super) struct Look<'a> {
    application: &'a str,
    processor: &'a str,
    new_stores: &'a [String],
    place: &'a TopicPartition,
    now: &'a Lineage,
}

impl<'a> Look<'a> {
    pub(super) fn of(
        application: &'a Application,
        spec: &'a ProcessorSpec,
        place: &'a TopicPartition,
        now: &'a Lineage,
    ) -> Self {
        let (processor, new_stores) = (&*spec.name, &*application.new_stores);
        Look { application: &application.id, processor, new_stores, place, now }
    }

    /// Faults as of [`check_all`].
    pub(super) fn check(&self, committed: &Committed) -> Result<(), Fault> {
        let Some(before) = Lineage::decode(&committed.metadata) else { return Ok(()) };
        // nothing lies before the first offset
        let Some(offset) = committed.offset.filter(|&offset| offset > 0) else { return Ok(()) };
        if before.input != self.now.input {
            return Err(self.of_another_topic(offset));
        }
        self.now.changelogs.iter().try_for_each(|(store, id)| {
            let was = before.changelog(store);
            let parked = store == ids::PARKED_STORE && was.is_none() && delivery::parked(&committed.metadata) == 0;
            match was {
                Some(was) if was == id => Ok(()),
                _ if parked || self.may_be_new(store) => Ok(()),
                // made by a start that was allowed to
                None if !id.is_empty() => Ok(()),
                was => Err(self.without_history(store, was.is_some(), offset)),
            }
        })
    }

    fn may_be_new(&self, store: &str) -> bool {
        self.new_stores.iter().any(|new| *new == format!("{}/{store}", self.processor))
    }

    fn of_another_topic(&self, offset: i64) -> Fault {
        let Look { application, processor, place, .. } = self;
        let (group, topic) = (ids::group(application, processor), &place.topic);
        let message = format!(
            "processor {processor}: offset {offset} of {place} was committed for an earlier topic of that name, which is gone"
        );
        Fault::fatal("offset-of-another-topic", message).hint(format!(
            "to read the topic that is there now from its start: kafka-consumer-groups.sh --group {group} --topic {topic} \
             --reset-offsets --to-earliest --execute; what the stores hold of the old one stays"
        ))
    }

    fn without_history(&self, store: &str, had_one: bool, offset: i64) -> Fault {
        let Look { application, processor, place, .. } = self;
        let topic = ids::changelog_topic(application, processor, store);
        let recreated = had_one && self.now.changelog(store).is_some_and(|id| !id.is_empty());
        let (code, what) = match (had_one, recreated) {
            (_, true) => ("changelog-recreated", format!("its changelog {topic} was deleted and created again")),
            (true, false) => ("state-missing", format!("its changelog {topic} is gone")),
            (false, false) => ("state-missing", "it was not there before".to_owned()),
        };
        let message = format!(
            "processor {processor}: store {store} has no history: {what}, and the records before {place}:{offset} are worked off"
        );
        Fault::fatal(code, message).hint(format!(
            "bring the topic back, or the plugin that had this store, or reset the group to process the records again; to begin \
             with an empty store all the same: --new-store {processor}/{store}, once"
        ))
    }
}

/// Names given with `--new-store` that are none of the application's. `Fatal` `store-unknown`.
pub(super) fn check_names(application: &Application, specs: &[Arc<ProcessorSpec>]) -> Result<(), Fault> {
    let all = |spec: &Arc<ProcessorSpec>| {
        let names = spec.all_stores().into_iter().map(|store| format!("{}/{}", spec.name, store.name));
        names.collect::<Vec<_>>()
    };
    let known: Vec<String> = specs.iter().flat_map(all).collect();
    match application.new_stores.iter().find(|new| !known.contains(new)) {
        None => Ok(()),
        Some(new) => {
            let fault = Fault::fatal("store-unknown", format!("--new-store {new}: no processor has such a store"));
            Err(fault.hint(if known.is_empty() {
                "there are none".into()
            } else {
                format!("there are: {}", known.join(", "))
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(input: &str, changelogs: &[(&str, &str)]) -> Lineage {
        let pair = |(store, id): &(&str, &str)| (store.to_string(), id.to_string());
        Lineage { input: input.into(), changelogs: changelogs.iter().map(pair).collect() }
    }

    /// The code of the refusal, or "" for none.
    fn look(before: &Committed, now: &Lineage, new: &[&str]) -> &'static str {
        let new_stores: Vec<String> = new.iter().map(|new| format!("p/{new}")).collect();
        let place = TopicPartition::new("in", 0);
        let look = Look { application: "a", processor: "p", new_stores: &new_stores, place: &place, now };
        look.check(before).err().map_or("", |fault| fault.code)
    }

    fn committed(offset: Option<i64>, parked: usize, before: &Lineage) -> Committed {
        Committed { offset, metadata: delivery::beside("", parked, &before.encode()) }
    }

    #[test]
    fn offsets_go_with_the_topics_that_they_were_committed_with() {
        let before = committed(Some(7), 0, &lineage("T", &[("s", "A")]));
        let cases: [(Lineage, &[&str], &str); 11] = [
            (lineage("T", &[("s", "A")]), &[], ""),
            (lineage("U", &[("s", "A")]), &[], "offset-of-another-topic"),
            (lineage("T", &[("s", "")]), &[], "state-missing"),
            (lineage("T", &[("s", "")]), &["s"], ""),
            (lineage("T", &[("s", "B")]), &[], "changelog-recreated"),
            (lineage("T", &[("s", "B")]), &["s"], ""),
            (lineage("T", &[("s", "A"), ("r", "")]), &[], "state-missing"),
            (lineage("T", &[("s", "A"), ("r", "")]), &["s"], "state-missing"),
            (lineage("T", &[("s", "A"), ("r", "C")]), &[], ""),
            (lineage("T", &[]), &[], ""),
            (lineage("T", &[("s", "A"), ("pelton-parked", "")]), &[], ""),
        ];
        for (now, new, code) in &cases {
            assert_eq!(look(&before, now, new), *code, "{now:?} {new:?}");
        }
    }

    #[test]
    fn where_nothing_was_worked_off_there_is_no_history() {
        let (before, now) = (lineage("T", &[("s", "A")]), lineage("U", &[("s", "")]));
        assert_eq!(look(&committed(Some(0), 0, &before), &now, &[]), "");
        assert_eq!(look(&committed(None, 0, &before), &now, &[]), "");
        let reset = Committed { offset: Some(7), metadata: String::new() };
        assert_eq!(look(&reset, &now, &[]), "", "whoever resets a group knows what they do");
    }

    #[test]
    fn parked_records_are_history() {
        let now = lineage("T", &[("pelton-parked", "")]);
        assert_eq!(look(&committed(Some(7), 3, &lineage("T", &[])), &now, &[]), "state-missing");
        let before = lineage("T", &[("pelton-parked", "P")]);
        assert_eq!(look(&committed(Some(7), 0, &before), &now, &[]), "state-missing");
    }
}
