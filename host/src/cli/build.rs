//! `pelton build`: from a guest crate to a component.

use super::args::BuildArgs;
use super::{Out, host, say};

pub(super) fn build(args: &BuildArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let folder = args.out.as_ref().unwrap_or(&args.dir);
    let built = host::build(&args.dir, folder, args.lines, args.install, &mut say)?;
    say(&format!("built a component of {} KB", built.bytes.div_ceil(1000)));
    Ok(writeln!(out.to, "{}", built.path.display())?)
}
