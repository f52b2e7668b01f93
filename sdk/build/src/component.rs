//! The core module as a component, and a file that is written whole or not at all.

use std::io::Write;
use std::path::Path;

use tempfile::NamedTempFile;
use wit_component::{ComponentEncoder, DecodedWasm};

use crate::error::BuildError;

/// Bytes 4 to 8 of a component, by the component model's binary format: version 13 of layer 1. A core module has layer 0.
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// Wraps the core module of crate `name` as a component and validates it. What is one already stays as it is.
pub fn componentize(name: &str, module: &[u8]) -> Result<Vec<u8>, BuildError> {
    if module.get(4..8) == Some(COMPONENT) {
        return Ok(module.to_vec());
    }
    let refused = |reason: String| BuildError::Component { name: name.to_owned(), reason };
    let mut encoder = ComponentEncoder::default();
    let encoded = encoder.validate(true).module(module).and_then(ComponentEncoder::encode);
    let component = encoded.map_err(|error| refused(format!("{error:#}")))?;
    match exports_something(&component) {
        true => Ok(component),
        false => Err(refused("it exports nothing".to_owned())),
    }
}

/// A crate that forgot its macro still makes a valid component: an empty one.
fn exports_something(component: &[u8]) -> bool {
    match wit_component::decode(component) {
        Ok(DecodedWasm::Component(resolve, world)) => !resolve.worlds[world].exports.is_empty(),
        _ => false,
    }
}

/// Writes a file beside its place and renames it there: a reader sees the old content or the new.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let failed = |error| BuildError::file("write the component", path, error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut file = NamedTempFile::new_in(dir).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    readable(file.path()).map_err(failed)?;
    file.persist(path).map(drop).map_err(|error| failed(error.error))
}

/// Temporary files are the owner's alone; a component may be read by the user that runs the host.
fn readable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    //! What is refused, and files that are whole.

    use super::{componentize, write_whole};
    use crate::BuildError;

    #[test]
    fn a_module_that_is_no_plugin_is_refused_by_name() {
        let error = componentize("odd", b"\0asm\x01\0\0\0").unwrap_err();
        assert!(matches!(error, BuildError::Component { .. }));
        let message = error.to_string();
        assert!(message.starts_with("module of `odd` cannot be made a component: "), "{message}");
    }

    #[test]
    fn a_component_stays_as_it_is() {
        let component = b"\0asm\x0d\0\x01\0";
        assert_eq!(componentize("done", component).unwrap(), component);
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/plugin.wasm");
        write_whole(&path, b"first").unwrap();
        write_whole(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
