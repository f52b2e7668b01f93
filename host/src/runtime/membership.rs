//! A host's membership in one processor's group: joined, polled on a thread of its own until the host stops, then left.

use super::Shared;
use super::assignment::Assignment;
use super::thread;
use crate::model::log::{GroupListener, GroupSpec, Member};
use crate::model::{Clock, Fault, Verdict, ids};
use crate::task::ProcessorSpec;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long one poll may last, and so how long a stop may go unnoticed.
const POLL: Duration = Duration::from_millis(100);
/// Between two attempts to join again.
const PAUSE: Duration = Duration::from_secs(1);
/// Fenced so often within so long, another process uses this identity; below that it may have been ourselves: a request from before a
/// freeze of the broker that it serves after it.
const FENCED_AT_MOST: usize = 2;
const WINDOW: Duration = Duration::from_secs(300);

struct Membership {
    shared: Arc<Shared>,
    assignment: Arc<Assignment>,
    member: Box<dyn Member>,
    /// When the group has fenced us, on the monotonic clock.
    fenced: Vec<Duration>,
}

/// Joins a processor's group and serves it on a thread.
pub(super) fn start(shared: &Arc<Shared>, assignment: &Arc<Assignment>) -> Result<JoinHandle<()>, Fault> {
    let member = join(shared, assignment)?;
    let name = format!("group-{}", assignment.spec().name);
    let membership = Membership { shared: shared.clone(), assignment: assignment.clone(), member, fenced: Vec::new() };
    thread::start(name, "a group thread", move || membership.run())
}

fn join(shared: &Shared, assignment: &Arc<Assignment>) -> Result<Box<dyn Member>, Fault> {
    let member = shared.log.join(spec(shared, assignment.spec()), assignment.clone() as Arc<dyn GroupListener>)?;
    assignment.joined(member.group());
    Ok(member)
}

fn spec(shared: &Shared, spec: &ProcessorSpec) -> GroupSpec {
    let application = &shared.application;
    GroupSpec {
        group: ids::group(&application.id, &spec.name),
        topics: spec.inputs.iter().map(|input| input.topic.clone()).collect(),
        protocol: application.group_protocol,
        instance_id: ids::member_id(&application.id, &shared.instance, &spec.name),
        session_timeout: application.session_timeout,
    }
}

impl Membership {
    fn run(mut self) {
        while !self.shared.ending.is_stopping() {
            match self.member.poll(POLL) {
                Ok(()) => {}
                Err(fault) if fault.code == "identity-in-use" && self.may_be_ourselves() => self.again(&fault),
                Err(fault) if fault.verdict == Verdict::Fatal => {
                    self.shared.ending.fail(fault);
                    break;
                }
                // the client tells of an outage once and then is silent: only an answer of the cluster ends it
                Err(fault) => {
                    self.shared.limits.doubt(&self.shared.health, format!("group of {}", self.name()), &fault)
                }
            }
        }
        self.leave();
    }

    fn name(&self) -> &str {
        &self.assignment.spec().name
    }

    fn leave(&mut self) {
        self.assignment.spec().metrics.group.member(false);
        if let Err(fault) = self.member.leave() {
            tracing::warn!(processor = self.name(), %fault, "leaving the group");
        }
    }

    fn may_be_ourselves(&mut self) -> bool {
        self.assignment.spec().metrics.group.fenced();
        let now = self.shared.clock.monotonic();
        self.fenced.retain(|&then| now.saturating_sub(then) < WINDOW);
        self.fenced.push(now);
        self.fenced.len() <= FENCED_AT_MOST
    }

    /// A new membership; the old one gives its partitions back as lost.
    fn again(&mut self, fault: &Fault) {
        tracing::warn!(processor = self.name(), %fault, "the group takes this host for another; joining again");
        self.leave();
        while !self.shared.ending.is_stopping() {
            match join(&self.shared, &self.assignment) {
                Ok(member) => {
                    self.member = member;
                    return;
                }
                Err(fault) if fault.verdict == Verdict::Transient => {
                    self.shared.limits.doubt(&self.shared.health, format!("group of {}", self.name()), &fault);
                    std::thread::park_timeout(PAUSE);
                }
                Err(fault) => return self.shared.ending.fail(fault),
            }
        }
    }
}
