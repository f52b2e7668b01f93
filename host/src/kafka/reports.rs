//! What a producer has sent since its last commit, and what came of it.

use super::faults;
use super::raw::Report;
use crate::model::log::{Origin, Refusal};
use crate::model::{Fault, Verdict};
use rdkafka::error::RDKafkaErrorCode as Code;

/// A record on its way.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) origin: Origin,
    /// Index of the topic.
    pub(super) topic: u32,
    /// Whether the sender named the partition, and so wants to know the offset.
    pub(super) placed: bool,
}

/// Records by tag, kept in one vector per transaction: no allocation per record.
#[derive(Default)]
pub(super) struct Ledger {
    sent: Vec<Sent>,
    refusals: Vec<Refusal>,
    /// The gravest failure that is no record's own.
    failure: Option<Fault>,
    /// A batch of several records was refused for one of them.
    suspects: bool,
    /// How many records are still to be sent one by one, to find the one that is to blame.
    singly: usize,
    /// By topic and partition: one past the highest acknowledged offset; 0 for none.
    acknowledged: Vec<Vec<i64>>,
}

impl Ledger {
    /// The tag under which the record's report will come.
    pub(super) fn add(&mut self, sent: Sent) -> usize {
        self.sent.push(sent);
        self.sent.len() - 1
    }

    /// Whether the record added last must be acknowledged before the next is sent.
    pub(super) fn one_by_one(&mut self) -> bool {
        let singly = self.singly > 0;
        self.singly = self.singly.saturating_sub(1);
        singly
    }

    /// Takes back the record added last: it was not sent.
    pub(super) fn unsend(&mut self, code: Code, to: &str) -> Result<(), Fault> {
        let Some(sent) = self.sent.pop() else { return Ok(()) };
        match faults::refusal(code) {
            Some(refusal) => self.refuse(sent, refusal, code, to),
            // A record refused before has ended the transaction; the next flush tells of it.
            None if code == Code::State && !self.refusals.is_empty() => {}
            None => return Err(faults::of_code(code, format!("sending to topic {to}"))),
        }
        Ok(())
    }

    /// Counts a report in; `names` are the topics' names by index.
    pub(super) fn settle(&mut self, report: &Report, name: impl Fn(u32) -> String) {
        let Some(&sent) = self.sent.get(report.tag) else { return };
        match report.outcome {
            Ok(offset) if sent.placed => self.acknowledge(sent.topic, report.partition, offset + 1),
            Ok(_) => {}
            Err(code) => match faults::refusal(code) {
                Some(refusal) if report.alone => self.refuse(sent, refusal, code, &name(sent.topic)),
                Some(_) => self.suspect(code, &name(sent.topic)),
                None => self.fail(faults::of_code(code, format!("sending to topic {}", name(sent.topic)))),
            },
        }
    }

    /// What has been refused since the last [`Ledger::forget`], or what went wrong beyond any record.
    pub(super) fn outcome(&self) -> Result<Vec<Refusal>, Fault> {
        match &self.failure {
            // Records that shared a batch with a refused one fail with it; they are not to blame.
            Some(fault) if self.refusals.is_empty() || fault.verdict != Verdict::Transient => Err(fault.clone()),
            _ => Ok(self.refusals.clone()),
        }
    }

    /// Whether a record was refused for what it is.
    pub(super) fn has_refused(&self) -> bool {
        self.suspects || !self.refusals.is_empty()
    }

    /// Whether everything was taken.
    pub(super) fn is_clean(&self) -> bool {
        self.refusals.is_empty() && self.failure.is_none()
    }

    /// Starts over. Only when nothing is on its way, as tags are given anew.
    pub(super) fn forget(&mut self) {
        if std::mem::take(&mut self.suspects) {
            self.singly = self.sent.len();
        }
        self.sent.clear();
        self.refusals.clear();
        self.failure = None;
    }

    pub(super) fn acknowledged(&self, topic: u32, partition: i32) -> Option<i64> {
        let partitions = self.acknowledged.get(topic as usize)?;
        partitions.get(usize::try_from(partition).ok()?).copied().filter(|&next| next > 0)
    }

    fn acknowledge(&mut self, topic: u32, partition: i32, next: i64) {
        let Ok(partition) = usize::try_from(partition) else { return };
        let topic = topic as usize;
        if self.acknowledged.len() <= topic {
            self.acknowledged.resize_with(topic + 1, Vec::new);
        }
        let partitions = &mut self.acknowledged[topic];
        if partitions.len() <= partition {
            partitions.resize(partition + 1, 0);
        }
        partitions[partition] = partitions[partition].max(next);
    }

    fn refuse(&mut self, sent: Sent, refusal: &'static str, code: Code, to: &str) {
        self.singly = 0;
        let message = format!("topic {to} refused a record: {}", faults::describe(code));
        self.refusals.push(Refusal { origin: sent.origin, code: refusal, message });
    }

    /// Some record of a batch is to blame, and the log does not say which: the same records are sent one by one after the abort.
    fn suspect(&mut self, code: Code, to: &str) {
        self.suspects = true;
        let message = format!("topic {to} refused one of several records: {}", faults::describe(code));
        self.fail(Fault::transient("output-suspected", message));
    }

    fn fail(&mut self, fault: Fault) {
        let grave = |verdict| match verdict {
            Verdict::Fatal => 2,
            Verdict::Fenced => 1,
            _ => 0,
        };
        if self.failure.as_ref().is_none_or(|known| grave(fault.verdict) > grave(known.verdict)) {
            self.failure = Some(fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(offset: i64, placed: bool) -> Sent {
        Sent { origin: Origin { slot: 1, input: 2, offset }, topic: 0, placed }
    }

    fn report(tag: usize, outcome: Result<i64, Code>) -> Report {
        Report { tag, partition: 3, alone: true, outcome }
    }

    fn name(_: u32) -> String {
        "out".into()
    }

    #[test]
    fn a_refusal_names_its_origin_and_its_neighbours_are_innocent() {
        let mut ledger = Ledger::default();
        let tags = [10, 11, 12].map(|offset| ledger.add(sent(offset, false)));
        ledger.settle(&report(tags[0], Err(Code::InvalidDifferentRecord)), name);
        ledger.settle(&report(tags[1], Err(Code::InvalidTimestamp)), name);
        ledger.settle(&report(tags[2], Err(Code::PurgeQueue)), name);
        let refusals = ledger.outcome().unwrap();
        let told: Vec<_> = refusals.iter().map(|r| (r.origin.offset, r.code)).collect();
        assert_eq!(told, [(11, "output-timestamp-refused")]);
    }

    #[test]
    fn a_batch_refused_for_one_record_is_sent_again_singly_and_nobody_is_blamed_yet() {
        let mut ledger = Ledger::default();
        for offset in 0..3 {
            let tag = ledger.add(sent(offset, false));
            ledger.settle(&Report { alone: false, ..report(tag, Err(Code::InvalidTimestamp)) }, name);
        }
        assert_eq!(ledger.outcome().unwrap_err().code, "output-suspected");
        ledger.forget();
        assert_eq!([(); 4].map(|()| ledger.one_by_one()), [true, true, true, false]);
    }

    #[test]
    fn a_topic_wide_failure_is_no_records_fault() {
        let mut ledger = Ledger::default();
        let tag = ledger.add(sent(10, false));
        ledger.settle(&report(tag, Err(Code::TopicAuthorizationFailed)), name);
        assert_eq!(ledger.outcome().unwrap_err().verdict, Verdict::Fatal);
        ledger.forget();
        assert!(ledger.is_clean());
    }

    #[test]
    fn acknowledged_offsets_are_of_placed_records_and_outlive_the_transaction() {
        let mut ledger = Ledger::default();
        let (placed, spread) = (ledger.add(sent(1, true)), ledger.add(sent(2, false)));
        ledger.settle(&report(placed, Ok(40)), name);
        ledger.settle(&report(spread, Ok(90)), name);
        ledger.forget();
        assert_eq!(ledger.acknowledged(0, 3), Some(41));
        assert_eq!((ledger.acknowledged(0, 2), ledger.acknowledged(1, 3)), (None, None));
    }
}
