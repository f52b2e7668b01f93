//! Which world a component belongs to, read from the names of its imports and exports before anything is linked: wasmtime would
//! accept a near version, and its own words about a far one name nothing that an author knows.

use crate::model::Fault;
use crate::model::manifest::World;

/// The package of the interface, and its one version (`wit/plugin.wit`).
pub(super) const PACKAGE: &str = "pelton:plugin";
pub(super) const VERSION: &str = "0.1.0";

const COMMON_IMPORTS: [&str; 4] = ["types", "log", "diagnostics", "metrics"];

/// The names that a component imports and exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Surface {
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

/// `pelton:plugin/NAME@VERSION`, taken apart.
struct Ours<'a> {
    name: &'a str,
    version: &'a str,
}

/// The world of a component, or the fault that says why it is in none.
pub(super) fn of(surface: &Surface) -> Result<World, Fault> {
    check_versions(surface)?;
    let exports = |name| surface.exports.iter().filter_map(|full| ours(full)).any(|own| own.name == name);
    let world = match (exports("transform"), exports("aggregate")) {
        (true, false) => World::Transform,
        (false, true) => World::Aggregate,
        (true, true) => return Err(other_world("exports both transform and aggregate")),
        (false, false) => return Err(other_world(&format!("exports {}", list(&surface.exports)))),
    };
    if !exports("lifecycle") {
        return Err(other_world("exports no lifecycle"));
    }
    surface.imports.iter().try_for_each(|full| check_import(world, full))?;
    Ok(world)
}

fn check_versions(surface: &Surface) -> Result<(), Fault> {
    let all = surface.exports.iter().chain(&surface.imports);
    match all.filter_map(|full| ours(full)).find(|own| own.version != VERSION) {
        None => Ok(()),
        Some(own) => Err(Fault::fatal(
            "plugin-other-interface",
            format!(
                "component was built for interface {PACKAGE}/{}@{}, this host speaks {PACKAGE}@{VERSION}",
                own.name, own.version
            ),
        )
        .hint("build the plugin with the SDK of this release")),
    }
}

fn check_import(world: World, full: &str) -> Result<(), Fault> {
    match ours(full) {
        Some(own) if COMMON_IMPORTS.contains(&own.name) => Ok(()),
        Some(own) if own.name == "state" => match world {
            World::Aggregate => Ok(()),
            World::Transform => Err(other_world("is a transform and imports state, which only an aggregate has")),
        },
        None if full.starts_with("wasi:") => Ok(()),
        _ => Err(unlinkable(full)),
    }
}

/// The fault for an import that this host does not have.
pub(super) fn unlinkable(what: &str) -> Fault {
    Fault::fatal("plugin-unlinkable", format!("component needs an import that this host does not have: {what}"))
        .hint("a plugin may import pelton:plugin and WASI 0.2 only")
}

/// The fault for exports that have the right names and other types.
pub(super) fn other_shape(error: &wasmtime::Error) -> Fault {
    Fault::fatal("plugin-other-interface", format!("component's exports differ from {PACKAGE}@{VERSION}: {error:#}"))
        .hint("build the plugin with the SDK of this release")
}

fn other_world(what: &str) -> Fault {
    Fault::fatal("plugin-other-world", format!("component is not a plugin: it {what}"))
        .hint(format!("a plugin exports {PACKAGE}/lifecycle@{VERSION} and one of transform and aggregate"))
}

fn ours(full: &str) -> Option<Ours<'_>> {
    let (name, version) = full.strip_prefix(PACKAGE)?.strip_prefix('/')?.split_once('@')?;
    Some(Ours { name, version })
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(imports: &[&str], exports: &[&str], expected: Result<World, &str>) {
        let full = |names: &[&str]| {
            names
                .iter()
                .map(|name| if name.contains(':') { (*name).to_owned() } else { format!("{PACKAGE}/{name}") })
                .collect()
        };
        let found = of(&Surface { imports: full(imports), exports: full(exports) });
        assert_eq!(found.as_ref().map_err(|fault| fault.code), expected.as_ref().map_err(|code| *code), "{found:?}");
    }

    #[test]
    fn worlds_are_told_by_full_names() {
        let log = "log@0.1.0";
        check(&[log], &["lifecycle@0.1.0", "transform@0.1.0"], Ok(World::Transform));
        check(&[log, "state@0.1.0"], &["lifecycle@0.1.0", "aggregate@0.1.0"], Ok(World::Aggregate));
        check(&[log, "metrics@0.1.0"], &["lifecycle@0.1.0", "transform@0.1.0"], Ok(World::Transform));
        check(&["wasi:io/poll@0.2.6"], &["lifecycle@0.1.0", "aggregate@0.1.0"], Ok(World::Aggregate));
        check(&["state@0.1.0"], &["lifecycle@0.1.0", "transform@0.1.0"], Err("plugin-other-world"));
        check(&[], &["transform@0.1.0"], Err("plugin-other-world"));
        check(&[], &["wasi:http/incoming-handler@0.2.0"], Err("plugin-other-world"));
        check(&[], &["lifecycle@0.1.0", "transform@0.1.0", "aggregate@0.1.0"], Err("plugin-other-world"));
        check(&[], &["lifecycle@0.1.1", "transform@0.1.1"], Err("plugin-other-interface"));
        check(&["log@0.2.0"], &["lifecycle@0.1.0", "transform@0.1.0"], Err("plugin-other-interface"));
        check(&["timers@0.1.0"], &["lifecycle@0.1.0", "transform@0.1.0"], Err("plugin-unlinkable"));
        check(&["acme:net/http@1.0.0"], &["lifecycle@0.1.0", "transform@0.1.0"], Err("plugin-unlinkable"));
    }

    #[test]
    fn both_versions_are_named() {
        let exports = vec!["pelton:plugin/lifecycle@0.9.0".to_owned()];
        let fault = of(&Surface { imports: Vec::new(), exports }).unwrap_err();
        assert!(fault.message.contains("@0.9.0") && fault.message.contains("@0.1.0"), "{fault}");
    }

    #[test]
    fn the_version_is_the_contracts() {
        let wit = include_str!("../../../wit/plugin.wit");
        assert!(wit.lines().any(|line| line == format!("package {PACKAGE}@{VERSION};")));
    }
}
