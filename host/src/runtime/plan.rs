//! From an application file to processors that can run: plugins loaded, names matched, topics found or made. Every start-up refusal
//! is here.

use super::hosts;
use super::lineage::{self, Lineages};
use super::matching;
use super::refusals::Refusals;
use super::rollout;
use crate::changelog;
use crate::config::Ordering;
use crate::config::names::TOPIC_NAME_MAX;
use crate::config::settings::{Application, Processor};
use crate::delivery::{self, LetterGate, MOST_STORES};
use crate::metrics::ProcessorMetrics;
use crate::model::log::{Delivery, Log, TopicInfo, TopicLimits, TopicSpec};
use crate::model::manifest::{Context, Manifest};
use crate::model::{Fault, Verdict, ids};
use crate::plugin::{Component, Engine};
use crate::task::{InputSpec, ProcessorSpec, Versions};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Everything that was resolved at start.
pub struct Plan {
    pub engine: Engine,
    pub processors: Vec<Arc<ProcessorSpec>>,
    pub topics: HashMap<Arc<str>, TopicInfo>,
}

/// What `check` found: nothing to refuse, and what `run` would create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Per processor: name, plugin name and version.
    pub processors: Vec<(String, String, String)>,
    pub creates: Vec<String>,
}

/// The plugins of an application, loaded and matched with its names: all that can be refused before the log is opened.
pub struct Plugins {
    engine: Engine,
    components: Vec<Arc<Component>>,
}

impl Plugins {
    /// Loads every plugin. `cache`: the folder of compiled components, made when the first one is put there.
    pub fn load(application: &Application, cache: Option<&Path>) -> Result<Plugins, Refusals> {
        let engine = Engine::with_stack(cache, application.plugin_stack_bytes)?;
        let load = |processor: &Processor| {
            let component = engine.load(&processor.plugin).map_err(|fault| during(processor, fault))?;
            matching::check(processor, &component.manifest).map(|()| component)
        };
        let components = Refusals::collect(application.processors.iter().map(load))?;
        Ok(Plugins { engine, components })
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// In the order of the file.
    pub(super) fn components(&self) -> &[Arc<Component>] {
        &self.components
    }

    /// The same with other components.
    pub(super) fn with(&self, components: Vec<Arc<Component>>) -> Plugins {
        Plugins { engine: self.engine.clone(), components }
    }

    /// Keeps the compiled code for the next start.
    pub fn keep(&self) {
        self.components.iter().for_each(|component| self.engine.keep(component));
    }
}

impl Plan {
    /// Finds or makes every topic. Everything was looked at before anything is made: this is the plan of that look.
    pub(super) fn make(&self, application: &Application, plugins: &Plugins, log: &dyn Log) -> Result<Plan, Fault> {
        Builder::new(application, log, false).build(plugins).map(|(plan, _)| plan)
    }

    /// Whether what the groups have committed and the topics belong together.
    pub(super) fn belongs(&self, application: &Application, log: &dyn Log) -> Result<(), Fault> {
        lineage::check_names(application, &self.processors)?;
        let topics = &self.topics;
        let check = |spec: &Arc<ProcessorSpec>| Lineages { log, application, spec, topics }.check_all();
        self.processors.iter().try_for_each(check)
    }

    /// The plan as it would be: topics that are missing are imagined.
    pub(super) fn look(application: &Application, plugins: &Plugins, log: &dyn Log) -> Result<Plan, Fault> {
        Builder::new(application, log, true).build(plugins).map(|(plan, _)| plan)
    }

    /// The same, with what is told of it.
    pub(super) fn check(application: &Application, plugins: &Plugins, log: &dyn Log) -> Result<(Plan, Report), Fault> {
        let (plan, creates) = Builder::new(application, log, true).build(plugins)?;
        plan.belongs(application, log)?;
        let name = |spec: &Arc<ProcessorSpec>| {
            let version = spec.versions.current();
            let manifest = &version.component.manifest;
            (spec.name.to_string(), manifest.name.clone(), manifest.version.clone())
        };
        let report = Report { processors: plan.processors.iter().map(name).collect(), creates };
        Ok((plan, report))
    }
}

struct Builder<'a> {
    application: &'a Application,
    log: &'a dyn Log,
    dry: bool,
    topics: HashMap<Arc<str>, TopicInfo>,
    creates: Vec<String>,
}

impl<'a> Builder<'a> {
    fn new(application: &'a Application, log: &'a dyn Log, dry: bool) -> Self {
        Builder { application, log, dry, topics: HashMap::new(), creates: Vec::new() }
    }

    fn build(mut self, plugins: &Plugins) -> Result<(Plan, Vec<String>), Fault> {
        let mut processors = Vec::new();
        for (processor, component) in self.application.processors.iter().zip(&plugins.components) {
            processors.push(Arc::new(self.processor(processor, component.clone())?));
        }
        let versions = self.internal(rollout::spec(&self.application.id))?;
        self.topics.get(&versions).map_or(Ok(()), rollout::check)?;
        self.hosts()?;
        Ok((Plan { engine: plugins.engine.clone(), processors, topics: self.topics }, self.creates))
    }

    fn processor(&mut self, processor: &Processor, component: Arc<Component>) -> Result<ProcessorSpec, Fault> {
        let inputs = self.inputs(processor, &component.manifest)?;
        let (partitions, input_bytes) = self.partitions(processor, &inputs)?;
        let outputs: Vec<(String, Arc<str>)> =
            processor.outputs.iter().map(|(name, topic)| (name.clone(), topic.as_str().into())).collect();
        for (name, topic) in &outputs {
            self.topic(topic, &format!("processor {}: outputs.{name}", processor.name))?;
        }
        let dead_letters = self.dead_letters(processor, (partitions, input_bytes))?;
        let changelogs = self.changelogs(processor, &component, (partitions, input_bytes))?;
        Ok(ProcessorSpec {
            application: self.application.id.clone(),
            name: processor.name.as_str().into(),
            inputs,
            outputs,
            stores: component.manifest.stores.clone(),
            changelogs,
            dead_letters,
            partitions,
            limits: processor.limits.clone(),
            delivery: self.application.delivery,
            ordering: processor.ordering,
            retry: processor.retry.clone(),
            dead_letter: processor.dead_letter.clone(),
            parking: processor.parking.clone(),
            letters: processor.dead_letter.limit.map(|limit| Mutex::new(LetterGate::new(limit))),
            news: Mutex::default(),
            failures: Mutex::default(),
            settings: processor.settings.to_string(),
            versions: Versions::new(component),
            metrics: ProcessorMetrics::new(&processor.name),
            stopped: AtomicBool::new(false),
        })
    }

    fn inputs(&mut self, processor: &Processor, manifest: &Manifest) -> Result<Vec<InputSpec>, Fault> {
        let mut inputs = Vec::new();
        for name in &manifest.inputs {
            let Some(input) = processor.inputs.get(name) else { continue };
            let topic: Arc<str> = input.topic.as_str().into();
            self.topic(&topic, &format!("processor {}: inputs.{name}", processor.name))?;
            inputs.push(InputSpec { name: name.clone(), topic, start: input.start });
        }
        Ok(inputs)
    }

    /// Partition count that all inputs share, and the largest record that any of them takes.
    fn partitions(&self, processor: &Processor, inputs: &[InputSpec]) -> Result<(i32, u64), Fault> {
        let infos: Vec<&TopicInfo> = inputs.iter().filter_map(|input| self.topics.get(&input.topic)).collect();
        let (count, bytes) =
            infos.iter().fold((0, 0), |(n, b), info| (info.partitions.max(n), info.limits.max_message_bytes.max(b)));
        if infos.iter().all(|info| info.partitions == count) {
            return Ok((count, bytes));
        }
        let counts: Vec<String> = infos.iter().map(|info| format!("{} has {}", info.name, info.partitions)).collect();
        let message = format!("processor {}: its inputs differ in partitions: {}", processor.name, counts.join(", "));
        Err(Fault::fatal("inputs-not-copartitioned", message)
            .hint("a task owns the same partition number of every input: give all of them the same count"))
    }

    fn dead_letters(&mut self, processor: &Processor, input: (i32, u64)) -> Result<Arc<str>, Fault> {
        match &processor.dead_letter_topic {
            Some(name) => {
                let topic: Arc<str> = name.as_str().into();
                self.topic(&topic, &format!("processor {}: dead_letter_topic", processor.name))?;
                self.keeps_letters(processor, &topic)?;
                if self.dry && processor.outputs.values().any(|output| output == name) {
                    let processor = &*processor.name;
                    tracing::warn!(processor, %topic, "dead letters go among outputs: whoever reads those meets both");
                }
                Ok(topic)
            }
            None => {
                let name = ids::dead_letter_topic(&self.application.id, &processor.name);
                self.internal(TopicSpec { properties: roomy(input.1), name, partitions: input.0, replication: None })
            }
        }
    }

    /// A compacted topic keeps the last letter of each key, and takes none without a key.
    fn keeps_letters(&self, processor: &Processor, topic: &str) -> Result<(), Fault> {
        if !self.topics.get(topic).is_some_and(|info| info.limits.compact) {
            return Ok(());
        }
        let message =
            format!("processor {}: dead_letter_topic {topic} is compacted, which loses letters", processor.name);
        Err(Fault::fatal("dead-letter-policy", message).hint("set its cleanup.policy to delete, or name another topic"))
    }

    fn changelogs(
        &mut self,
        processor: &Processor,
        component: &Component,
        (partitions, input_bytes): (i32, u64),
    ) -> Result<Vec<Arc<str>>, Fault> {
        let (application, name) = (&self.application.id, &processor.name);
        let mut stores: Vec<&str> = component.manifest.stores.iter().map(|store| store.name.as_str()).collect();
        if self.has_park(processor)? {
            stores.push(ids::PARKED_STORE);
        }
        if stores.len() > MOST_STORES {
            let message = format!("processor {name}: {} stores, and {MOST_STORES} are the most", stores.len());
            return Err(
                Fault::fatal("too-many-stores", message).hint("keep several kinds of values in one store, by prefix")
            );
        }
        let mut topics = Vec::new();
        for store in stores {
            let topic = self.internal(changelog::spec(application, name, store, partitions, input_bytes))?;
            if let Some(info) = self.topics.get(&topic) {
                changelog::check(info, partitions)?;
            }
            topics.push(topic);
        }
        Ok(topics)
    }

    /// Whether records are parked by key, or were and may be left.
    fn has_park(&self, processor: &Processor) -> Result<bool, Fault> {
        let topic = ids::changelog_topic(&self.application.id, &processor.name, ids::PARKED_STORE);
        let has = processor.ordering == Ordering::Key || self.log.topic(&topic)?.is_some();
        if has && self.application.delivery == Delivery::AtLeastOnce {
            // without transactions a parked record may leave its changelog before its outputs are acknowledged
            let message = format!("processor {}: records that wait by key need exactly-once delivery", processor.name);
            let hint = format!(
                "set application.delivery = \"exactly-once\", or ordering = \"partition\"; where records were parked before, work them \
                 off with exactly-once once and delete topic {topic}"
            );
            return Err(Fault::fatal("ordering-needs-exactly-once", message).hint(hint));
        }
        Ok(has)
    }

    /// Finds a topic that the file names, or makes it where the file says so.
    fn topic(&mut self, name: &Arc<str>, setting: &str) -> Result<(), Fault> {
        if self.topics.contains_key(name) {
            return Ok(());
        }
        if let Some(info) = self.log.topic(name)? {
            self.topics.insert(name.clone(), info);
            return Ok(());
        }
        if !self.application.create_topics {
            let message = format!("{setting}: topic {name} does not exist");
            return Err(Fault::fatal("topic-missing", message)
                .hint("create it, or set create_topics = true under [log] and describe it under [topics]"));
        }
        self.create(self.described(name))
    }

    fn described(&self, name: &str) -> TopicSpec {
        let topic = self.application.topics.get(name);
        let properties = topic.map(|t| t.properties.clone().into_iter().collect()).unwrap_or_default();
        let replication = topic.and_then(|t| t.replication);
        TopicSpec { name: name.to_owned(), partitions: topic.map_or(1, |t| t.partitions), replication, properties }
    }

    /// Finds or makes one of our own topics.
    fn internal(&mut self, spec: TopicSpec) -> Result<Arc<str>, Fault> {
        let name: Arc<str> = spec.name.as_str().into();
        fits(&name)?;
        match self.log.topic(&name)? {
            Some(info) => {
                self.topics.insert(name.clone(), info);
            }
            None => self.create(spec)?,
        }
        Ok(name)
    }

    /// Finds or makes the topic by which hosts find each other. It is none of those that the pipeline needs: not watched over like
    /// them, and done without where it cannot be made.
    fn hosts(&mut self) -> Result<(), Fault> {
        let topic = match self.internal(hosts::topic(&self.application.id)) {
            Ok(topic) => topic,
            Err(fault) if fault.verdict == Verdict::Transient => return Err(fault),
            Err(fault) => {
                tracing::warn!(%fault, "hosts cannot tell each other where they are");
                return Ok(());
            }
        };
        self.topics.remove(&topic);
        Ok(())
    }

    fn create(&mut self, spec: TopicSpec) -> Result<(), Fault> {
        let name: Arc<str> = spec.name.as_str().into();
        self.creates.push(spec.name.clone());
        if self.dry {
            self.topics.insert(name, imagined(&spec)?);
            return Ok(());
        }
        tracing::info!(topic = spec.name, partitions = spec.partitions, "creating topic");
        self.log.create_topic(&spec)?;
        let Some(info) = self.log.topic(&name)? else {
            // the cluster's metadata lags behind a creation: asked again by whoever retries the start
            return Err(Fault::transient(
                "topic-not-yet-there",
                format!("topic {name}: created, but not yet to be seen"),
            ));
        };
        self.topics.insert(name, info);
        Ok(())
    }
}

/// Names of ours are made of others', and must leave room for that of the topic of replays.
fn fits(topic: &str) -> Result<(), Fault> {
    let length = ids::marks_topic(topic).len();
    if length <= TOPIC_NAME_MAX {
        return Ok(());
    }
    let message = format!("topic {topic}: a name of {} characters, and {} are too many", topic.len(), length);
    Err(Fault::fatal("name-too-long", message).hint(format!(
        "topics have names of at most {TOPIC_NAME_MAX}: shorten the names of application, processor or store"
    )))
}

/// Settings of a dead-letter topic of our own: it takes every record that its input takes, with the headers that say why.
fn roomy(input_max_message_bytes: u64) -> Vec<(String, String)> {
    let bytes = input_max_message_bytes.saturating_add(delivery::ROOM).min(i32::MAX as u64);
    [
        ("max.message.bytes", bytes.to_string()),
        ("message.timestamp.before.max.ms", i64::MAX.to_string()),
        ("message.timestamp.after.max.ms", i64::MAX.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// What a topic that `run` would create looks like.
fn imagined(spec: &TopicSpec) -> Result<TopicInfo, Fault> {
    Ok(TopicInfo {
        name: spec.name.clone(),
        id: String::new(),
        partitions: spec.partitions,
        limits: TopicLimits::with(&spec.name, &spec.properties)?,
    })
}

fn during(processor: &Processor, fault: Fault) -> Fault {
    fault.during(format!("processor {}", processor.name))
}

/// What an instance of this processor is told for one partition.
pub(super) fn context(spec: &ProcessorSpec, partition: i32, topics: &HashMap<Arc<str>, TopicInfo>) -> Context {
    let inputs = spec.inputs.iter().map(|input| (input.name.clone(), input.topic.to_string())).collect();
    let outputs = spec.outputs.iter().map(|(name, topic)| (name.clone(), topic.to_string())).collect();
    let sizes =
        spec.outputs.iter().filter_map(|(_, topic)| topics.get(topic)).map(|info| info.limits.max_message_bytes);
    Context {
        application: spec.application.clone(),
        processor: spec.name.to_string(),
        partition: partition as u32,
        inputs,
        outputs,
        stores: spec.stores.iter().map(|store| store.name.clone()).collect(),
        settings: spec.settings.clone(),
        max_record_bytes: u32::try_from(sizes.min().unwrap_or(u64::MAX)).unwrap_or(u32::MAX),
    }
}
