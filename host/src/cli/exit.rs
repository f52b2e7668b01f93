//! Exit codes: what a script or a service manager may decide by. `docs/exit-codes.md` is their page.

use super::host::{Failure, Refusals};
use crate::config::ConfigErrors;
use crate::model::{Fault, Verdict};
use std::fmt;
use std::io::{self, ErrorKind};

pub(super) const OK: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const USAGE: u8 = 2;
pub(super) const REFUSED: u8 = 3;
/// Of an unclean stop, too: then the runtime ends the process with it, as nothing below may be waited for any more.
pub(super) const UNFINISHED: u8 = 4;
pub(super) const IDENTITY: u8 = 5;
pub(super) const PARTLY: u8 = 6;
/// No host is there to be asked.
pub(super) const NOT_RUNNING: u8 = 7;

/// Codes of faults that end a host that was running, where everything else that is fatal was refused before.
const WHILE_RUNNING: &[&str] = &[
    "dead-letter-limit",
    "dead-letter-refused",
    "dead-letter-too-large",
    "log-io",
    "no-thread",
    "plugin-init-failed",
    "plugin-stop",
    "policy-stop",
    "thread-panicked",
    "topic-deleted",
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

/// Told to stop before what was asked for was done.
#[derive(Debug)]
pub(super) struct Unfinished(pub String);

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfinished {}

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
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return of_failure(failure);
    }
    if error.is::<ConfigErrors>() {
        return REFUSED;
    }
    if error.is::<Usage>() {
        return USAGE;
    }
    if error.is::<Unfinished>() {
        return UNFINISHED;
    }
    if error.is::<Partly>() {
        return PARTLY;
    }
    if is_closed_pipe(error) { OK } else { FAILED }
}

/// Whether standard output was closed by its reader, as `| head` does: nobody is left to tell.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    // what writes JSON hides the error that it met from the chain
    let json = |e: &(dyn std::error::Error + 'static)| e.downcast_ref::<serde_json::Error>()?.io_error_kind();
    let kind = |e: &(dyn std::error::Error + 'static)| e.downcast_ref::<io::Error>().map(io::Error::kind);
    error.chain().filter_map(|e| kind(e).or_else(|| json(e))).any(|kind| kind == ErrorKind::BrokenPipe)
}

fn of_fault(fault: &Fault) -> u8 {
    match fault.verdict {
        Verdict::Fenced => IDENTITY,
        Verdict::Fatal if fault.code == IDENTITY_IN_USE => IDENTITY,
        Verdict::Fatal if !WHILE_RUNNING.contains(&fault.code) => REFUSED,
        _ => FAILED,
    }
}

/// What a host refuses has changed nothing; what it cannot do now, or what is not understood, may be asked again.
fn of_failure(failure: &Failure) -> u8 {
    match failure {
        Failure::NotRunning(_) => NOT_RUNNING,
        Failure::Refused { status: 400..=499, code, .. } if code != "body-too-slow" => REFUSED,
        Failure::Refused { .. } | Failure::Unreachable(_) => FAILED,
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
        assert_eq!(code(&Unfinished("x".into()).into()), UNFINISHED);
        assert_eq!(code(&Failure::NotRunning("x".into()).into()), NOT_RUNNING);
        assert_eq!(code(&Failure::Unreachable("x".into()).into()), FAILED);
        let refused = |status| Failure::Refused { status, code: "c".into(), message: "m".into(), hint: None };
        assert_eq!([422, 503].map(|status| code(&refused(status).into())), [REFUSED, FAILED]);
        let pipe = anyhow::Error::from(io::Error::from(ErrorKind::BrokenPipe)).context("printing");
        assert_eq!(code(&pipe), OK);
        let full = anyhow::Error::from(io::Error::from(ErrorKind::StorageFull));
        assert_eq!(code(&full), FAILED);
    }

    /// A reader that went away.
    struct Closed;

    impl io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(ErrorKind::BrokenPipe))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_known_behind_json_too() {
        let error = serde_json::to_writer(Closed, &5).unwrap_err();
        assert_eq!(code(&anyhow::Error::from(error).context("printing")), OK);
        let error = serde_json::from_str::<u8>("x").unwrap_err();
        assert_eq!(code(&error.into()), FAILED);
    }

    #[test]
    fn the_page_names_every_code() {
        let page = include_str!("../../../docs/exit-codes.md");
        for code in [OK, FAILED, USAGE, REFUSED, UNFINISHED, IDENTITY, PARTLY, NOT_RUNNING] {
            assert!(page.contains(&format!("| {code} |")), "{code}");
        }
        for code in WHILE_RUNNING.iter().chain([&IDENTITY_IN_USE]) {
            assert!(page.contains(&format!("`{code}`")), "{code}");
        }
    }
}
