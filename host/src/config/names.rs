//! Names that become topics, groups and transactional ids: what Kafka takes, checked before anything is created.

/// Kafka's limit for the name of a topic (`org.apache.kafka.common.internals.Topic`).
pub const TOPIC_NAME_MAX: usize = 249;

/// What a changelog's name adds to those of application, processor and store (`model::ids::changelog_topic`).
const CHANGELOG_EXTRA: usize = "---changelog".len();

/// Why `name` cannot be a topic, or a part of the name of one; `None` where it can.
pub fn topic_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is empty".to_owned());
    }
    if name == "." || name == ".." {
        return Some(format!("`{name}` is no name for a topic"));
    }
    if name.len() > TOPIC_NAME_MAX {
        return Some(format!("has {} characters; a topic's name has at most {TOPIC_NAME_MAX}", name.len()));
    }
    let bad = name.chars().find(|&c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')));
    bad.map(|c| format!("holds {c:?}; names have letters, digits, `.`, `_` and `-`"))
}

/// How many characters are left for the name of a store; negative where not even an empty one fits.
pub fn store_name_room(application: &str, processor: &str) -> isize {
    TOPIC_NAME_MAX as isize - (application.len() + processor.len() + CHANGELOG_EXTRA) as isize
}

/// Whether a topic's name is one that this application gives to its changelogs.
pub fn is_internal(application: &str, topic: &str) -> bool {
    topic.strip_prefix(application).is_some_and(|rest| rest.starts_with('-') && rest.ends_with("-changelog"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::changelog_topic;

    #[test]
    fn the_room_left_is_exact() {
        let room = store_name_room("app", "proc") as usize;
        assert_eq!(changelog_topic("app", "proc", &"s".repeat(room)).len(), TOPIC_NAME_MAX);
    }

    #[test]
    fn names_that_kafka_refuses() {
        for wrong in ["", ".", "..", "a b", "a/b", "ü", &"x".repeat(250)] {
            assert!(topic_problem(wrong).is_some(), "{wrong}");
        }
        for right in ["a", "A.b_c-9", "...", &"x".repeat(249)] {
            assert_eq!(topic_problem(right), None);
        }
    }
}
