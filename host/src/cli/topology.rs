//! `pelton topology`: which processor reads and writes what, from the application file and the plugins alone.

use super::args::TopologyArgs;
use super::{Out, host, load};
use crate::config::{Application, Processor, Start};
use crate::model::ids;
use crate::model::manifest::{Manifest, StoreSpec, World};
use serde::Serialize;
use std::collections::BTreeMap;

/// An application as a graph.
#[derive(Debug, Serialize)]
struct Topology {
    application: String,
    processors: Vec<Node>,
    /// By name.
    topics: BTreeMap<String, Topic>,
}

#[derive(Debug, Serialize)]
struct Node {
    name: String,
    plugin: String,
    version: String,
    world: String,
    group: String,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    stores: Vec<Store>,
    dead_letter_topic: String,
}

#[derive(Debug, Serialize)]
struct Input {
    /// The plugin's.
    name: String,
    topic: String,
    start: &'static str,
}

#[derive(Debug, Serialize)]
struct Output {
    name: String,
    topic: String,
}

#[derive(Debug, Serialize)]
struct Store {
    name: String,
    changelog: String,
}

/// Names of processors.
#[derive(Debug, Default, Serialize)]
struct Topic {
    read_by: Vec<String>,
    written_by: Vec<String>,
    /// Whose dead letters are in it.
    dead_letters_of: Vec<String>,
}

pub(super) fn topology(args: &TopologyArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let application = load(&args.file)?;
    let topology = Topology::of(&application, host::describe(&application)?);
    if args.json {
        return Ok(writeln!(out.to, "{}", serde_json::to_string(&topology)?)?);
    }
    if args.dot { topology.dot(out) } else { topology.text(out) }
}

impl Topology {
    fn of(application: &Application, plugins: Vec<(World, Manifest)>) -> Topology {
        let each = application.processors.iter().zip(plugins);
        let processors: Vec<Node> =
            each.map(|(processor, plugin)| Node::of(&application.id, processor, plugin)).collect();
        let mut topics = BTreeMap::<String, Topic>::new();
        for node in &processors {
            for input in &node.inputs {
                topics.entry(input.topic.clone()).or_default().read_by.push(node.name.clone());
            }
            for output in &node.outputs {
                topics.entry(output.topic.clone()).or_default().written_by.push(node.name.clone());
            }
            topics.entry(node.dead_letter_topic.clone()).or_default().dead_letters_of.push(node.name.clone());
        }
        Topology { application: application.id.clone(), processors, topics }
    }

    fn text(&self, out: &mut Out<'_>) -> anyhow::Result<()> {
        writeln!(out.to, "application {}", self.application)?;
        self.processors.iter().try_for_each(|node| node.text(out))
    }

    /// For Graphviz.
    fn dot(&self, out: &mut Out<'_>) -> anyhow::Result<()> {
        writeln!(out.to, "digraph {} {{\n  rankdir=LR;", quoted(&self.application))?;
        for name in self.topics.keys() {
            writeln!(out.to, "  {} [shape=cds, label={}];", topic_id(name), quoted(name))?;
        }
        self.processors.iter().try_for_each(|node| node.dot(out))?;
        Ok(writeln!(out.to, "}}")?)
    }
}

impl Node {
    fn of(application: &str, processor: &Processor, (world, manifest): (World, Manifest)) -> Node {
        let own = || ids::dead_letter_topic(application, &processor.name);
        let store = |store: &StoreSpec| Store {
            name: store.name.clone(),
            changelog: ids::changelog_topic(application, &processor.name, &store.name),
        };
        Node {
            name: processor.name.clone(),
            world: world.to_string(),
            group: ids::group(application, &processor.name),
            inputs: inputs(processor),
            outputs: processor
                .outputs
                .iter()
                .map(|(name, topic)| Output { name: name.clone(), topic: topic.clone() })
                .collect(),
            stores: manifest.stores.iter().map(store).collect(),
            dead_letter_topic: processor.dead_letter_topic.clone().unwrap_or_else(own),
            plugin: manifest.name,
            version: manifest.version,
        }
    }

    fn text(&self, out: &mut Out<'_>) -> anyhow::Result<()> {
        let Node { name, plugin, version, world, group, .. } = self;
        writeln!(out.to, "\nprocessor {name}  (plugin {plugin} {version}, {world}, group {group})")?;
        for Input { name, topic, start } in &self.inputs {
            writeln!(out.to, "  in     {name} <- {topic} (from the {start} record where nothing is committed)")?;
        }
        for Output { name, topic } in &self.outputs {
            writeln!(out.to, "  out    {name} -> {topic}")?;
        }
        for Store { name, changelog } in &self.stores {
            writeln!(out.to, "  store  {name} = {changelog}")?;
        }
        Ok(writeln!(out.to, "  dead letters -> {}", self.dead_letter_topic)?)
    }

    fn dot(&self, out: &mut Out<'_>) -> anyhow::Result<()> {
        let own = quoted(&format!("processor {}", self.name));
        let label = quoted(&format!("{}\n{} {}", self.name, self.plugin, self.version));
        writeln!(out.to, "  {own} [shape=box, label={label}];")?;
        for Input { name, topic, .. } in &self.inputs {
            writeln!(out.to, "  {} -> {own} [label={}];", topic_id(topic), quoted(name))?;
        }
        for Output { name, topic } in &self.outputs {
            writeln!(out.to, "  {own} -> {} [label={}];", topic_id(topic), quoted(name))?;
        }
        for Store { name, .. } in &self.stores {
            let store = quoted(&format!("store {}/{name}", self.name));
            writeln!(out.to, "  {store} [shape=cylinder, label={}];", quoted(name))?;
            writeln!(out.to, "  {own} -> {store} [dir=both];")?;
        }
        let letters = topic_id(&self.dead_letter_topic);
        Ok(writeln!(out.to, "  {own} -> {letters} [style=dashed, label=\"dead letters\"];")?)
    }
}

fn inputs(processor: &Processor) -> Vec<Input> {
    let start = |start| match start {
        Start::Earliest => "earliest",
        Start::Latest => "latest",
    };
    let input = processor.inputs.iter().map(|(name, input)| Input {
        name: name.clone(),
        topic: input.topic.clone(),
        start: start(input.start),
    });
    input.collect()
}

fn topic_id(name: &str) -> String {
    quoted(&format!("topic {name}"))
}

/// As Graphviz reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, parse};
    use crate::model::manifest::Scope;
    use std::path::Path;

    const APPLICATION: &str = r#"
application.id = "app"
[log]
kind = "local"
dir = "log"
[[processor]]
name = "a"
plugin = "a.wasm"
inputs.in = "t"
outputs.out = "u"
[[processor]]
name = "b"
plugin = "b.wasm"
dead_letter_topic = "dead"
inputs.in = { topic = "u", start = "latest" }
"#;

    fn topology() -> Topology {
        let application = parse(APPLICATION, Path::new("app.toml"), &Environment::new()).unwrap();
        let manifest = |name: &str, stores| Manifest {
            name: name.to_owned(),
            version: "1".to_owned(),
            sdk: String::new(),
            inputs: vec!["in".to_owned()],
            outputs: vec![],
            other_outputs: true,
            stores,
        };
        let store = StoreSpec {
            name: "sums".to_owned(),
            scope: Scope::Key,
            codec: "u64".to_owned(),
            schema_version: 1,
            reads_from: 1,
        };
        let plugins =
            vec![(World::Transform, manifest("pa", vec![])), (World::Aggregate, manifest("p\"b", vec![store]))];
        Topology::of(&application, plugins)
    }

    fn print(show: impl Fn(&Topology, &mut Out<'_>) -> anyhow::Result<()>) -> String {
        let mut text = Vec::new();
        show(&topology(), &mut Out { to: &mut text, terminal: false }).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn as_text() {
        let expected = "\
application app

processor a  (plugin pa 1, transform, group app-a)
  in     in <- t (from the earliest record where nothing is committed)
  out    out -> u
  dead letters -> app-a-dead-letters

processor b  (plugin p\"b 1, aggregate, group app-b)
  in     in <- u (from the latest record where nothing is committed)
  store  sums = app-b-sums-changelog
  dead letters -> dead
";
        assert_eq!(print(Topology::text), expected);
    }

    #[test]
    fn as_a_graph() {
        let graph = print(Topology::dot);
        for line in [
            "digraph \"app\" {",
            "  \"topic u\" -> \"processor b\" [label=\"in\"];",
            "  \"processor b\" [shape=box, label=\"b\\np\\\"b 1\"];",
            "  \"processor b\" -> \"store b/sums\" [dir=both];",
            "  \"processor a\" -> \"topic u\" [label=\"out\"];",
            "  \"processor b\" -> \"topic dead\" [style=dashed, label=\"dead letters\"];",
        ] {
            assert!(graph.lines().any(|found| found == line), "{line}\n{graph}");
        }
    }

    #[test]
    fn topics_know_who_reads_and_writes_them() {
        let json = serde_json::to_value(topology()).unwrap();
        assert_eq!(
            json["topics"]["u"],
            serde_json::json!({"read_by": ["b"], "written_by": ["a"], "dead_letters_of": []})
        );
        assert_eq!(json["topics"]["dead"]["dead_letters_of"][0], "b");
    }
}
