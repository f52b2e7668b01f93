//! Everything that a start refuses at one time, so that a person mends it in one go.

use crate::config::Application;
use crate::model::Fault;
use std::fmt;

/// One refusal or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(Vec<Fault>);

impl Refusals {
    /// The results of several attempts: all of them, or every refusal.
    pub(super) fn collect<T>(results: impl Iterator<Item = Result<T, Fault>>) -> Result<Vec<T>, Refusals> {
        let (mut done, mut refused) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(value) => done.push(value),
                Err(fault) => refused.push(fault),
            }
        }
        if refused.is_empty() { Ok(done) } else { Err(Refusals(refused)) }
    }

    pub fn faults(&self) -> &[Fault] {
        &self.0
    }
}

/// The refusal of a processor's name that is none of the application's.
pub(super) fn unknown_processor(application: &Application, processor: &str) -> Fault {
    let known: Vec<&str> = application.processors.iter().map(|known| known.name.as_str()).collect();
    let message = format!("application {} has no processor `{processor}`", application.id);
    Fault::fatal("processor-unknown", message).hint(format!("it has: {}", known.join(", ")))
}

impl From<Fault> for Refusals {
    fn from(fault: Fault) -> Refusals {
        Refusals(vec![fault])
    }
}

/// Verdict and code are the first one's; the message has a line for each.
impl From<Refusals> for Fault {
    fn from(refusals: Refusals) -> Fault {
        let text = refusals.to_string();
        let (one, mut faults) = (refusals.0.len() == 1, refusals.0.into_iter());
        match faults.next() {
            Some(fault) if one => fault,
            Some(first) => Fault::new(first.verdict, first.code, text),
            None => Fault::fatal("refused", text),
        }
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Fault::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Refusals {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_kept() {
        let fault = |code| Fault::fatal(code, code).hint("mend it");
        let refused = Refusals::collect([Ok(1), Err(fault("a")), Ok(2), Err(fault("b"))].into_iter()).unwrap_err();
        assert_eq!(refused.to_string(), "a (mend it)\nb (mend it)");
        assert_eq!(Fault::from(refused.clone()), Fault::fatal("a", "a (mend it)\nb (mend it)"));
        assert_eq!(refused.faults(), [fault("a"), fault("b")]);
        assert_eq!(Fault::from(Refusals::from(fault("a"))), fault("a"), "a single one stays as it is");
        assert_eq!(Refusals::collect([Ok(1), Ok(2)].into_iter()), Ok(vec![1, 2]));
    }
}
