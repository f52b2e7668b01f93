//! The core module as a component, and a file that is written whole or not at all.

use std::io::Write;
use std::path::Path;

use tempfile::NamedTempFile;
use wit_component::ComponentEncoder;

use crate::error::BuildError;

/// Bytes 4 to 8 of a component, by the component model's binary format: version 13 of layer 1. A core module has layer 0.
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// Wraps the core module of crate `name` as a component and validates it. What is one already stays as it is.
pub fn componentize(name: &str, module: &[u8]) -> Result<Vec<u8>, BuildError> {
    if module.get(4..8) == Some(COMPONENT) {
        return Ok(module.to_vec());
    }
    let mut encoder = ComponentEncoder::default();
    let encoded = encoder.validate(true).module(module).and_then(ComponentEncoder::encode);
    encoded.map_err(|error| BuildError::Component { name: name.to_owned(), reason: format!("{error:#}") })
}

/// Writes a file beside its place and renames it there: a reader sees the old content or the new.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
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
