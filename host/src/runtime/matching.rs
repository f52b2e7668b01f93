//! Whether an application file and a plugin fit: names, and what the processor's ordering needs of stores. Refused before the log is
//! opened.

use crate::config::{Ordering, Processor};
use crate::model::manifest::{Manifest, Scope};
use crate::model::{Fault, ids};

/// Refuses what would not work, with the setting's name.
pub(super) fn check(processor: &Processor, manifest: &Manifest) -> Result<(), Fault> {
    match_names(processor, manifest)?;
    own_names(processor, manifest)?;
    key_scope(processor, manifest)
}

/// Every name in the file is one of the plugin's (a misspelt one is told before what it leaves out), and every input and output of
/// the plugin has a topic.
fn match_names(processor: &Processor, manifest: &Manifest) -> Result<(), Fault> {
    let plugin = &manifest.name;
    let refuse = |setting: String, problem: &str, known: &[String]| {
        let message = format!("processor {}: {setting}: {problem} of plugin {plugin}", processor.name);
        Err(Fault::fatal("plugin-names", message).hint(format!("it has: {}", known.join(", "))))
    };
    if let Some(name) = processor.inputs.keys().find(|name| !manifest.inputs.contains(name)) {
        return refuse(format!("inputs.{name}"), "not an input", &manifest.inputs);
    }
    let unknown = processor.outputs.keys().find(|name| !manifest.outputs.contains(name) && !manifest.other_outputs);
    if let Some(name) = unknown {
        return refuse(format!("outputs.{name}"), "not an output", &manifest.outputs);
    }
    for name in &manifest.inputs {
        if !processor.inputs.contains_key(name) {
            return refuse(format!("inputs.{name}"), "missing; it is an input", &manifest.inputs);
        }
    }
    for name in &manifest.outputs {
        if !processor.outputs.contains_key(name) {
            return refuse(format!("outputs.{name}"), "missing; it is an output", &manifest.outputs);
        }
    }
    Ok(())
}

/// Names of our own stores are not a plugin's to take.
fn own_names(processor: &Processor, manifest: &Manifest) -> Result<(), Fault> {
    let Some(store) = manifest.stores.iter().find(|store| store.name.starts_with(ids::OWN_STORES)) else {
        return Ok(());
    };
    let message =
        format!("processor {}: store {} of plugin {}: its name is reserved", processor.name, store.name, manifest.name);
    let hint =
        format!("names that begin with {} are the host's: give the store another in the plugin", ids::OWN_STORES);
    Err(Fault::fatal("store-name-reserved", message).hint(hint))
}

/// While a key waits other keys go on, and those would see a partition-scoped store without what the waiting record is yet to write.
fn key_scope(processor: &Processor, manifest: &Manifest) -> Result<(), Fault> {
    let partition = manifest.stores.iter().find(|store| store.scope == Scope::Partition);
    let (Ordering::Key, Some(store)) = (processor.ordering, partition) else { return Ok(()) };
    let message = format!(
        "processor {}: ordering = \"key\" cannot be had: store {} of plugin {} has the scope of a partition",
        processor.name, store.name, manifest.name
    );
    Err(Fault::fatal("ordering-needs-key-scope", message)
        .hint("set ordering = \"partition\", or use a plugin whose stores have the scope of a key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, parse};
    use crate::model::Verdict;
    use crate::model::manifest::StoreSpec;
    use std::path::Path;

    fn processor(lines: &str) -> Processor {
        let text = format!(
            "[application]\nid = \"a\"\n[log]\nkind = \"local\"\ndir = \"l\"\n[[processor]]\nname = \"p\"\nplugin = \"p.wasm\"\ninputs.in = \"t\"\n{lines}"
        );
        parse(&text, Path::new("a.toml"), &Environment::new()).unwrap().processors.remove(0)
    }

    fn manifest(stores: &[(&str, Scope)]) -> Manifest {
        let store = |&(name, scope): &(&str, Scope)| StoreSpec {
            name: name.to_owned(),
            scope,
            codec: "raw".to_owned(),
            schema_version: 1,
            reads_from: 1,
        };
        Manifest {
            name: "plug".to_owned(),
            version: String::new(),
            sdk: String::new(),
            inputs: vec!["in".to_owned()],
            outputs: vec![],
            other_outputs: false,
            stores: stores.iter().map(store).collect(),
        }
    }

    #[track_caller]
    fn refused(lines: &str, stores: &[(&str, Scope)], code: &str, says: &[&str]) {
        let fault = check(&processor(lines), &manifest(stores)).unwrap_err();
        assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, code));
        says.iter().for_each(|says| assert!(fault.to_string().contains(says), "{says}: {fault}"));
    }

    #[test]
    fn ordering_by_key_needs_stores_by_key() {
        let key = "ordering = \"key\"\n";
        let mixed = [("counts", Scope::Key), ("table", Scope::Partition)];
        refused(key, &mixed, "ordering-needs-key-scope", &["processor p", "store table", "ordering = \"partition\""]);
        assert_eq!(check(&processor(""), &manifest(&mixed)), Ok(()));
        assert_eq!(check(&processor(key), &manifest(&mixed[..1])), Ok(()));
        assert_eq!(check(&processor(key), &manifest(&[])), Ok(()));
    }

    #[test]
    fn our_own_stores_names_are_reserved() {
        let says = ["store pelton-parked", "plugin plug", "begin with pelton-"];
        refused("", &[("pelton-parked", Scope::Key)], "store-name-reserved", &says);
        refused("", &[("a", Scope::Key), ("pelton-x", Scope::Partition)], "store-name-reserved", &["pelton-x"]);
        assert_eq!(check(&processor(""), &manifest(&[("peltons", Scope::Key), ("my-pelton-", Scope::Key)])), Ok(()));
    }

    #[test]
    fn names_are_matched_first() {
        refused("inputs.other = \"u\"", &[("pelton-x", Scope::Key)], "plugin-names", &["inputs.other", "it has: in"]);
    }
}
