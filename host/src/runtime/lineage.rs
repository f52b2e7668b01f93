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
    let id = |name: &str| topics.get(name).map(|info| Lineage::id(&info.id)).unwrap_or_default();
    let stores = spec.all_stores();
    let changelogs = stores.iter().zip(&spec.changelogs).map(|(store, name)| (store.name.clone(), id(name)));
    Lineage { input: id(topic), changelogs: changelogs.collect(), retired: Vec::new(), sequence: 0 }
}

/// A processor whose group is looked at.
#[derive(Clone, Copy)]
pub(super) struct Lineages<'a> {
    pub log: &'a dyn Log,
    pub application: &'a Application,
    pub spec: &'a ProcessorSpec,
    pub topics: &'a Topics,
}

impl Lineages<'_> {
    /// Looks at every partition that the processor's group has committed. `Transient` where the cluster does not answer, or while
    /// another host makes the topics.
    ///
    /// `Fatal`: `state-missing`, `state-stale`, `changelog-recreated`, `offset-of-another-topic`.
    pub(super) fn check_all(self) -> Result<(), Fault> {
        let committed = self.committed()?;
        let (vouched, mut undeclared) = (vouched(&committed), BTreeSet::new());
        for (place, committed) in &committed {
            let now = of(self.spec, self.topics, &place.topic);
            self.look(place, &now, &vouched).check(committed).map_err(|fault| self.lagging(fault))?;
            let before = Lineage::decode(&committed.metadata).unwrap_or_default();
            let known = before.changelogs.iter().map(|(store, _)| store);
            undeclared.extend(known.filter(|store| now.changelog(store).is_none()).cloned());
        }
        for store in undeclared {
            let processor = &*self.spec.name;
            tracing::warn!(
                processor,
                store,
                "the plugin declares this store no more; from now on it misses what is committed"
            );
        }
        Ok(())
    }

    /// Looks at one partition, whose offset this start did not see: it may be of a host that was allowed to make a store meanwhile.
    pub(super) fn check_one(self, place: &TopicPartition, committed: &Committed) -> Result<(), Fault> {
        let now = of(self.spec, self.topics, &place.topic);
        if self.look(place, &now, &[]).check(committed).is_ok() {
            return Ok(());
        }
        self.look(place, &now, &vouched(&self.committed()?)).check(committed)
    }

    fn committed(&self) -> Result<Vec<(TopicPartition, Committed)>, Fault> {
        let numbers = 0..self.spec.partitions;
        let of = |topic: &Arc<str>| numbers.clone().map(|p| TopicPartition::new(topic.clone(), p)).collect::<Vec<_>>();
        let places: Vec<_> = self.spec.inputs.iter().flat_map(|input| of(&input.topic)).collect();
        let committed = self.log.committed(&ids::group(&self.application.id, &self.spec.name), &places)?;
        Ok(places.into_iter().zip(committed).collect())
    }

    fn look<'l>(&'l self, place: &'l TopicPartition, now: &'l Lineage, vouched: &'l [Pair]) -> Look<'l> {
        let (processor, new_stores) = (&*self.spec.name, &*self.application.new_stores);
        Look { application: &self.application.id, processor, new_stores, vouched, place, now }
    }

    /// A quicker host may have made a changelog, and committed with it, since this one looked for the topic.
    fn lagging(&self, fault: Fault) -> Fault {
        let imagined = |name: &&Arc<str>| self.topics.get(*name).is_some_and(|info| info.id.is_empty());
        let made = |name: &&Arc<str>| matches!(self.log.topic(name), Ok(Some(_)));
        match self.spec.changelogs.iter().filter(imagined).find(made) {
            Some(name) => {
                Fault::transient("topic-not-yet-there", format!("topic {name} has just been made; looking again"))
            }
            None => fault,
        }
    }
}

/// A store and the id of its changelog.
type Pair = (String, String);

/// What any partition is committed with: a store that was allowed to begin empty did so in all of them.
fn vouched(committed: &[(TopicPartition, Committed)]) -> Vec<Pair> {
    committed
        .iter()
        .filter_map(|(_, committed)| Lineage::decode(&committed.metadata))
        .flat_map(|l| l.changelogs)
        .collect()
}

/// One partition, and what its offset would go with.
struct Look<'a> {
    application: &'a str,
    processor: &'a str,
    new_stores: &'a [String],
    vouched: &'a [Pair],
    place: &'a TopicPartition,
    now: &'a Lineage,
}

impl Look<'_> {
    /// Faults as of [`Lineages::check_all`].
    fn check(&self, committed: &Committed) -> Result<(), Fault> {
        let Some(before) = Lineage::decode(&committed.metadata) else { return Ok(()) };
        // nothing lies before the first offset
        let Some(offset) = committed.offset.filter(|&offset| offset > 0) else { return Ok(()) };
        if before.input != self.now.input {
            return Err(self.of_another_topic(offset));
        }
        let parked = delivery::parked(&committed.metadata);
        if parked > 0 && self.now.changelog(ids::PARKED_STORE).is_none() {
            return Err(self.without_history(ids::PARKED_STORE, &format!("{parked} records are parked in it"), offset));
        }
        let mut stores = self.now.changelogs.iter().filter(|(store, _)| parked > 0 || store != ids::PARKED_STORE);
        stores.try_for_each(|pair| self.store(pair, &before, offset))
    }

    fn store(&self, (store, id): &Pair, before: &Lineage, offset: i64) -> Result<(), Fault> {
        if !id.is_empty() && before.retired(store) == Some(id) {
            return Err(self.stale(store, offset));
        }
        let was = before.changelog(store);
        let vouched = !id.is_empty() && self.vouched.iter().any(|(name, known)| name == store && known == id);
        if was == Some(id) || vouched || self.may_be_new(store) {
            return Ok(());
        }
        let topic = ids::changelog_topic(self.application, self.processor, store);
        let what = match (was, id.is_empty()) {
            (Some(_), false) => return Err(self.recreated(store, offset)),
            (Some(_), true) => format!("its changelog {topic} is gone"),
            (None, false) => format!("it was not there before, and its changelog {topic} is none of its own"),
            (None, true) => "it was not there before".to_owned(),
        };
        Err(self.without_history(store, &what, offset))
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

    fn recreated(&self, store: &str, offset: i64) -> Fault {
        let topic = ids::changelog_topic(self.application, self.processor, store);
        let fault =
            self.without_history(store, &format!("its changelog {topic} was deleted and created again"), offset);
        Fault { code: "changelog-recreated", ..fault }
    }

    fn without_history(&self, store: &str, what: &str, offset: i64) -> Fault {
        let Look { processor, place, .. } = self;
        let message = format!(
            "processor {processor}: store {store} has no history: {what}, and the records before {place}:{offset} are worked off"
        );
        Fault::fatal("state-missing", message).hint(format!(
            "bring the topic back, or the plugin or setting that had this store, or reset the group to process the records again; to \
             begin with an empty store all the same: --new-store {processor}/{store}, once"
        ))
    }

    fn stale(&self, store: &str, offset: i64) -> Fault {
        let Look { processor, place, .. } = self;
        let topic = ids::changelog_topic(self.application, processor, store);
        let message = format!(
            "processor {processor}: store {store} is stale: records before {place}:{offset} were worked off by a plugin without it"
        );
        Fault::fatal("state-stale", message).hint(format!(
            "reset the group to process the records again; or to begin with an empty store: delete topic {topic} and the processor's \
             stores in the state folders, and start with --new-store {processor}/{store}, once"
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

    type Pairs<'p> = &'p [(&'p str, &'p str)];

    fn pairs(stores: Pairs<'_>) -> Vec<Pair> {
        stores.iter().map(|(store, id)| (store.to_string(), id.to_string())).collect()
    }

    fn lineage(input: &str, changelogs: Pairs<'_>) -> Lineage {
        Lineage { input: input.into(), changelogs: pairs(changelogs), retired: Vec::new(), sequence: 0 }
    }

    /// The code of the refusal, or "" for none.
    fn look(before: &Committed, now: &Lineage, (new, vouched): (&[&str], Pairs<'_>)) -> &'static str {
        let new_stores: Vec<String> = new.iter().map(|new| format!("p/{new}")).collect();
        let (place, vouched) = (TopicPartition::new("in", 0), pairs(vouched));
        let (application, processor) = ("a", "p");
        let look = Look { application, processor, new_stores: &new_stores, vouched: &vouched, place: &place, now };
        look.check(before).err().map_or("", |fault| fault.code)
    }

    fn committed(offset: Option<i64>, parked: usize, before: &Lineage) -> Committed {
        Committed { offset, metadata: delivery::beside("", parked, &before.encode()) }
    }

    #[test]
    fn offsets_go_with_the_topics_that_they_were_committed_with() {
        let before = committed(Some(7), 0, &lineage("T", &[("s", "A")]));
        let cases: [(Lineage, &[&str], Pairs<'_>, &str); 14] = [
            (lineage("T", &[("s", "A")]), &[], &[], ""),
            (lineage("U", &[("s", "A")]), &[], &[], "offset-of-another-topic"),
            (lineage("T", &[("s", "")]), &[], &[], "state-missing"),
            (lineage("T", &[("s", "")]), &["s"], &[], ""),
            (lineage("T", &[("s", "B")]), &[], &[], "changelog-recreated"),
            (lineage("T", &[("s", "B")]), &["s"], &[], ""),
            (lineage("T", &[("s", "B")]), &[], &[("s", "B")], ""),
            (lineage("T", &[("s", "A"), ("r", "")]), &[], &[], "state-missing"),
            (lineage("T", &[("s", "A"), ("r", "")]), &["s"], &[], "state-missing"),
            (lineage("T", &[("s", "A"), ("r", "C")]), &[], &[], "state-missing"),
            (lineage("T", &[("s", "A"), ("r", "C")]), &[], &[("r", "D")], "state-missing"),
            (lineage("T", &[("s", "A"), ("r", "C")]), &[], &[("r", "C")], ""),
            (lineage("T", &[]), &[], &[], ""),
            (lineage("T", &[("s", "A"), ("pelton-parked", "")]), &[], &[], ""),
        ];
        for (now, new, vouched, code) in &cases {
            assert_eq!(look(&before, now, (new, vouched)), *code, "{now:?} {new:?} {vouched:?}");
        }
    }

    #[test]
    fn a_store_that_comes_back_has_missed_something() {
        let before = committed(Some(7), 0, &lineage("T", &[]).after(&lineage("T", &[("s", "A")])));
        let (same, none, other) =
            (lineage("T", &[("s", "A")]), lineage("T", &[("s", "")]), lineage("T", &[("s", "B")]));
        for (new, vouched) in [(&[][..], &[][..]), (&["s"], &[]), (&[], &[("s", "A")])] {
            assert_eq!(look(&before, &same, (new, vouched)), "state-stale", "{new:?} {vouched:?}");
        }
        assert_eq!([&none, &other].map(|now| look(&before, now, (&[], &[]))), ["state-missing"; 2]);
        assert_eq!([&none, &other].map(|now| look(&before, now, (&["s"], &[]))), [""; 2]);
    }

    #[test]
    fn where_nothing_was_worked_off_there_is_no_history() {
        let (before, now) = (lineage("T", &[("s", "A")]), lineage("U", &[("s", "")]));
        assert_eq!(look(&committed(Some(0), 0, &before), &now, (&[], &[])), "");
        assert_eq!(look(&committed(None, 0, &before), &now, (&[], &[])), "");
        let reset = Committed { offset: Some(7), metadata: String::new() };
        assert_eq!(look(&reset, &now, (&[], &[])), "", "whoever resets a group knows what they do");
    }

    #[test]
    fn parked_records_are_history_and_an_empty_park_is_none() {
        let with = |id| lineage("T", &[("pelton-parked", id)]);
        let cases = [
            (3, lineage("T", &[]), with(""), "state-missing"),
            (3, with("P"), with("P"), ""),
            (3, with("P"), with(""), "state-missing"),
            (3, with("P"), with("Q"), "changelog-recreated"),
            (3, with("P"), lineage("T", &[]), "state-missing"),
            (0, with("P"), with(""), ""),
            (0, with("P"), with("Q"), ""),
            (0, with("P"), lineage("T", &[]), ""),
            (0, lineage("T", &[]).after(&with("P")), with("P"), ""),
        ];
        for (parked, before, now, code) in &cases {
            assert_eq!(
                look(&committed(Some(7), *parked, before), now, (&[], &[])),
                *code,
                "{parked} {before:?} {now:?}"
            );
        }
    }
}
