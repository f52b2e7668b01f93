//! What Kafka's and librdkafka's errors mean for those above: one table from codes to verdicts.

use crate::model::Fault;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use std::fmt::Display;

/// No broker is reached, or it does not answer.
pub(super) const AWAY: &str = "broker-away";

/// The fault of a failed call; `doing` says what was attempted on what.
pub(super) fn of(error: &KafkaError, doing: impl Display) -> Fault {
    match error {
        KafkaError::Transaction(error) if error.is_fatal() => producer_ended(error.code(), &error.string(), doing),
        KafkaError::Transaction(error) => of_code(error.code(), doing),
        KafkaError::ClientConfig(_, reason, name, _) => bad_property(name, reason),
        KafkaError::ClientCreation(reason) => refused_settings(reason),
        other => match other.rdkafka_error_code() {
            Some(code) => of_code(code, doing),
            None => Fault::transient("kafka-error", format!("{doing}: {}", lower(&other.to_string()))),
        },
    }
}

/// The fault of an error code.
pub(super) fn of_code(code: Code, doing: impl Display) -> Fault {
    let message = format!("{doing}: {}", describe(code));
    match code {
        Code::AutoOffsetReset | Code::OffsetOutOfRange => {
            // the client's own words are of a reset that Pelton never lets it do
            let message = format!("{doing}: the offset to read at is not in the partition");
            Fault::fatal("offset-out-of-range", message).hint(
                "retention has deleted it, or the topic was deleted and created again: reset the group's offset, knowing what was lost",
            )
        }
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownTopicId => {
            Fault::fatal("topic-missing", message).hint("create the topic, or set create_topics")
        }
        // librdkafka says so too of every partition while none of the topic has a leader, as when a broker has just come back
        Code::UnknownPartition => Fault::transient("partition-missing", message)
            .hint("is the broker that leads it up? does the topic have that partition?"),
        Code::OffsetMetadataTooLarge => Fault::fatal("offset-metadata-too-large", message)
            .hint("raise the broker's offset.metadata.max.bytes to 4096, its default, or more"),
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed => Fault::fatal("not-authorised", message)
            .hint("grant the principal what it attempted (see the broker's ACLs)"),
        Code::Authentication | Code::SaslAuthenticationFailed | Code::UnsupportedSASLMechanism => {
            Fault::fatal("not-authenticated", message).hint("check the credentials in [kafka.properties]")
        }
        Code::FencedInstanceId => Fault::fatal("identity-in-use", message).hint(
            "another process uses the identity kept in this state folder: stop it, or give each its own --state-dir",
        ),
        Code::InconsistentGroupProtocol | Code::UnsupportedAssignor => Fault::fatal("group-protocol-differs", message)
            .hint("all members of a group need the same inputs and group_protocol: stop the others first"),
        Code::UnsupportedFeature | Code::UnsupportedVersion => {
            Fault::fatal("broker-too-old", message).hint("Kafka 4 or what speaks its protocol is needed")
        }
        Code::InvalidTransactionTimeout => Fault::fatal("transaction-timeout-too-long", message)
            .hint("lower transaction_timeout, or raise the broker's transaction.max.timeout.ms"),
        Code::InvalidSessionTimeout => Fault::fatal("session-timeout-refused", message).hint(
            "keep session_timeout within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms",
        ),
        Code::InvalidGroupId | Code::InvalidTopic => Fault::fatal("name-refused", message),
        Code::Fenced
        | Code::ProducerFenced
        | Code::InvalidProducerEpoch
        | Code::InvalidProducerIdMapping
        | Code::TransactionCoordinatorFenced
        | Code::Fatal => Fault::fenced("producer-fenced", message),
        Code::IllegalGeneration
        | Code::UnknownMemberId
        | Code::StaleMemberEpoch
        | Code::FencedMemberEpoch
        | Code::RebalanceInProgress
        | Code::AssignmentLost => Fault::transient("group-moved-on", message),
        Code::UnstableOffsetCommit => Fault::transient("offsets-unstable", message),
        Code::BrokerTransportFailure
        | Code::AllBrokersDown
        | Code::Resolve
        | Code::OperationTimedOut
        | Code::RequestTimedOut
        | Code::MessageTimedOut
        | Code::BrokerNotAvailable
        | Code::SSL => Fault::transient(AWAY, message),
        _ => Fault::transient("kafka-error", message),
    }
}

/// A record refused for what it is, by code of [`crate::model::log::Refusal`]; `None` where the topic or the cluster is to blame.
pub(super) fn refusal(code: Code) -> Option<&'static str> {
    match code {
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize => Some("output-too-large"),
        Code::InvalidTimestamp => Some("output-timestamp-refused"),
        Code::InvalidRecord | Code::InvalidMessage => Some("output-refused"),
        _ => None,
    }
}

/// The error's description, as messages are written here.
pub(super) fn describe(code: Code) -> String {
    let text = code.to_string();
    // rdkafka writes `Name (Broker: What happened)`.
    let text = text.split_once(" (").map_or(&*text, |(_, rest)| rest.trim_end_matches(')'));
    lower(text.trim_start_matches("Broker: ").trim_start_matches("Local: "))
}

/// A producer that reported a fatal error: of no more use, whatever the code, unless a new one would fare no better.
pub(super) fn producer_ended(code: Code, reason: &str, doing: impl Display) -> Fault {
    let fault = of_code(code, &doing);
    match fault.verdict {
        crate::model::Verdict::Fatal => fault,
        _ => Fault::fenced("producer-fenced", format!("{doing}: {}", lower(reason))),
    }
}

fn bad_property(name: &str, reason: &str) -> Fault {
    Fault::fatal("bad-property", format!("property {name} was refused by the kafka client: {}", lower(reason)))
        .hint("see librdkafka's CONFIGURATION.md for its values")
}

fn refused_settings(reason: &str) -> Fault {
    Fault::fatal("bad-property", format!("the kafka client refused its settings: {}", lower(reason)))
        .hint("check [kafka.properties]")
}

fn lower(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;

    #[test]
    fn a_stale_member_is_not_a_fenced_producer() {
        for code in [Code::IllegalGeneration, Code::UnknownMemberId, Code::StaleMemberEpoch] {
            let fault = of_code(code, "sending offsets");
            assert_eq!((fault.verdict, fault.code), (Verdict::Transient, "group-moved-on"));
        }
        for code in [Code::Fenced, Code::InvalidProducerEpoch, Code::ProducerFenced] {
            assert_eq!(of_code(code, "committing").verdict, Verdict::Fenced);
        }
    }

    #[test]
    fn only_the_records_own_faults_are_refusals() {
        assert_eq!(refusal(Code::MessageSizeTooLarge), Some("output-too-large"));
        assert_eq!(refusal(Code::InvalidTimestamp), Some("output-timestamp-refused"));
        for code in [Code::TopicAuthorizationFailed, Code::NotEnoughReplicas, Code::InvalidDifferentRecord] {
            assert_eq!(refusal(code), None);
        }
    }

    #[test]
    fn messages_are_lower_case_without_a_full_stop() {
        let fault = of_code(Code::UnknownPartition, "reading orders/3 at 17");
        assert_eq!(fault.message, "reading orders/3 at 17: unknown partition");
        let fault = of_code(Code::OffsetOutOfRange, "reading orders/3 at 17");
        assert_eq!(fault.code, "offset-out-of-range");
        assert!(fault.message.starts_with("reading orders/3 at 17: the offset") && !fault.message.ends_with('.'));
    }
}
