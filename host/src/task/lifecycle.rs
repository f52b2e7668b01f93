//! The states of a task and the moves between them.
//!
//! ```text
//!   Running <──> BackingOff
//!      │             │
//!      └──> Halted <─┘        (needs a person, or a rebuild of the store)
//! ```
//! A task that is being opened is the runtime's; one that is closed is gone.

use crate::model::Fault;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    /// The next record waits for its retry; the reason is the plugin's.
    BackingOff(String),
    /// Does nothing any more. The fault's verdict says what can help.
    Halted(Fault),
}

/// Whether the processor as a whole is to stand still for this fault, as its plugin or its policy says, while the others go on.
pub fn stops_processor(fault: &Fault) -> bool {
    ["plugin-stop", "policy-stop", "dead-letter-limit", "dead-letter-too-large", "dead-letter-refused"]
        .contains(&fault.code)
}

impl State {
    /// Moves to `next` where that is legal, and says whether it did. A halted task stays halted, with its first reason.
    pub fn enter(&mut self, next: State) -> bool {
        let legal = !matches!(self, State::Halted(_));
        if legal {
            *self = next;
        }
        legal
    }

    pub fn is_halted(&self) -> bool {
        matches!(self, State::Halted(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halted_is_final() {
        let states = || [State::Running, State::BackingOff("r".into()), State::Halted(Fault::fatal("a", "a"))];
        for from in states() {
            for to in states() {
                let mut state = from.clone();
                assert_eq!(state.enter(to.clone()), !from.is_halted(), "{from:?} to {to:?}");
                assert_eq!(state, if from.is_halted() { from.clone() } else { to });
            }
        }
    }
}
