//! Exit codes: what a script or a service manager may decide by. `docs/exit-codes.md` is their page.

use super::host::Refusals;
use crate::config::ConfigErrors;
use crate::model::{Fault, Verdict};
use std::fmt;
use std::io::{self, ErrorKind};

// 4 is an unclean stop: the runtime ends the process with it, as nothing below may be waited for any more.
pub(super) const OK: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const USAGE: u8 = 2;
pub(super) const REFUSED: u8 = 3;
pub(super) const IDENTITY: u8 = 5;
pub(super) const PARTLY: u8 = 6;

/// Codes of faults that end a host that was running, where everything else that is fatal was refused before.
const WHILE_RUNNING: &[&str] = &[
    "dead-letter-limit",
    "dead-letter-refused",
    "dead-letter-too-large",
    "no-thread",
    "plugin-init-failed",
    "plugin-stop",
    "policy-stop",
    "thread-panicked",
    "topic-recreated",
    "worker-stuck",
];

/// Another process uses our producer's identity.
const IDENTITY_IN_USE: &str = "identity-in-use";

/// A command line that is well-formed and still makes no sense.
#[derive(Debug)]
pub(super) struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// What was asked for was done, save for what has been named.
#[derive(Debug)]
pub(super) struct Partly(pub String);

impl fmt::Display for Partly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Partly {}

/// The exit code of a verb's error.
pub(super) fn code(error: &anyhow::Error) -> u8 {
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return of_fault(fault);
    }
    if let Some(refusals) = error.downcast_ref::<Refusals>() {
        return refusals.faults().first().map_or(REFUSED, of_fault);
    }
    if error.is::<ConfigErrors>() {
        return REFUSED;
    }
    if error.is::<Usage>() {
        return USAGE;
    }
    if error.is::<Partly>() {
        return PARTLY;
    }
    if is_closed_pipe(error) { OK } else { FAILED }
}

/// Whether standard output was closed by its reader, as `| head` does: nobody is left to tell.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == ErrorKind::BrokenPipe)
}

fn of_fault(fault: &Fault) -> u8 {
    match fault.verdict {
        Verdict::Fenced => IDENTITY,
        Verdict::Fatal if fault.code == IDENTITY_IN_USE => IDENTITY,
        Verdict::Fatal if !WHILE_RUNNING.contains(&fault.code) => REFUSED,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_by_verdict_and_code() {
        assert_eq!(code(&Fault::fatal("topic-missing", "x").into()), REFUSED);
        assert_eq!(code(&Fault::fatal("worker-stuck", "x").into()), FAILED);
        assert_eq!(code(&Fault::fatal("identity-in-use", "x").into()), IDENTITY);
        assert_eq!(code(&Fault::fenced("producer-fenced", "x").into()), IDENTITY);
        assert_eq!(code(&Fault::transient("broker-away", "x").into()), FAILED);
        assert_eq!(code(&Fault::fenced("replay-superseded", "x").into()), IDENTITY);
        assert_eq!(code(&Refusals::from(Fault::fatal("plugin-missing", "x")).into()), REFUSED);
        assert_eq!(code(&Refusals::from(Fault::transient("broker-away", "x")).into()), FAILED);
        assert_eq!(code(&Usage("x".into()).into()), USAGE);
        assert_eq!(code(&Partly("x".into()).into()), PARTLY);
        let pipe = anyhow::Error::from(io::Error::from(ErrorKind::BrokenPipe)).context("printing");
        assert_eq!(code(&pipe), OK);
    }

    #[test]
    fn the_page_names_every_code() {
        let page = include_str!("../../../docs/exit-codes.md");
        for code in [OK, FAILED, USAGE, REFUSED, 4, IDENTITY, PARTLY] {
            assert!(page.contains(&format!("| {code} |")), "{code}");
        }
        for code in WHILE_RUNNING.iter().chain([&IDENTITY_IN_USE]) {
            assert!(page.contains(&format!("`{code}`")), "{code}");
        }
    }
}
