//! The one table of settings: what may be written, what it means, and what stands for it when it is left out. Checking and
//! the reference page both come from here.

/// One setting. In `path` a segment such as `<topic>` stands for any name.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub path: &'static str,
    pub kind: Kind,
    pub fallback: Fallback,
    /// A TOML value that is valid here.
    pub example: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What more and less of it cost; empty where there is nothing to weigh.
    pub trade_off: &'static str,
}

/// The type of a setting, with its bounds (inclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A part of names of topics, groups and transactional ids.
    Name,
    Topic,
    /// A topic's name, or a table with `topic` and `start`.
    TopicOrTable,
    /// Relative ones start at the application file's folder.
    Path,
    Switch,
    Choice(&'static [&'static str]),
    Integer {
        min: i64,
        max: i64,
    },
    /// A number that may be decimal.
    Factor {
        min: i64,
        max: i64,
    },
    Duration {
        min: &'static str,
        max: &'static str,
    },
    Size {
        min: &'static str,
        max: &'static str,
    },
    /// Properties of librdkafka.
    ClientProperties,
    /// Properties of an object store.
    StoreProperties,
    /// Properties of a topic, by Kafka's names.
    TopicProperties,
    /// A share such as `20%`, or a rate such as `10/s`.
    LetterLimit,
    /// Failure codes, each with what is done about it.
    Codes,
    /// Any table; it is the plugin's.
    Free,
}

/// What stands for a setting that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    Required,
    /// As it would be written, without quotes.
    Value(&'static str),
    /// Nothing; the words say what that means.
    Without(&'static str),
}

/// What stands above a run of settings on the reference page.
pub struct Section {
    pub path: &'static str,
    pub header: &'static str,
    pub meaning: &'static str,
}

/// Largest number of partitions: task slots and partition numbers are kept small on purpose.
const PARTITIONS_MAX: i64 = 100_000;

/// The sections in the order of the page.
pub const SECTIONS: &[Section] = &[
    Section { path: "application", header: "[application]", meaning: "The application as a whole." },
    Section { path: "log", header: "[log]", meaning: "Where topics are: an Apache Kafka cluster or the embedded log." },
    Section { path: "kafka", header: "[kafka.properties]", meaning: "Properties of the Kafka client." },
    Section {
        path: "admin",
        header: "[admin]",
        meaning: "The admin surface: health, metrics, status, state, deploys; see [admin.md](admin.md).",
    },
    Section {
        path: "components",
        header: "[components]",
        meaning: "Where hosts keep the components that were deployed, by their digests; see [deploy.md](deploy.md).",
    },
    Section {
        path: "topics.<topic>",
        header: "[topics.<topic>]",
        meaning: "How a topic is made where `log.create_topics` is on. A topic that exists is left as it is.",
    },
    Section {
        path: "processor",
        header: "[[processor]]",
        meaning: "One plugin with its inputs and outputs. Repeat the section for more processors.",
    },
    Section {
        path: "processor.inputs.<input>",
        header: "inputs.<input> = { … }",
        meaning: "An input whose start is not the default, as `inputs.orders = { topic = \"orders\", start = \"latest\" }`.",
    },
    Section {
        path: "processor.limits",
        header: "[processor.limits]",
        meaning: "What a plugin may use. All limits hold per instance, that is per task.",
    },
    Section {
        path: "processor.retry",
        header: "[processor.retry]",
        meaning: "When and how often a record that failed is tried again: one that the plugin asks to be, and what `codes` says; see [dead-letters.md](dead-letters.md).",
    },
    Section {
        path: "processor.dead_letter",
        header: "[processor.dead_letter]",
        meaning: "How dead letters are written, and how many are too many; see [dead-letters.md](dead-letters.md).",
    },
    Section {
        path: "processor.parking",
        header: "[processor.parking]",
        meaning: "Records set aside with `ordering = \"key\"` because one of their key waits for its retry. At either bound a task takes no new input until there is room.",
    },
];

/// Every setting there is, in the order of the page.
pub const SETTINGS: &[Setting] = &[
    Setting {
        path: "application.id",
        kind: Kind::Name,
        fallback: Fallback::Required,
        example: "\"orders\"",
        meaning: "Begins the names of consumer groups (`<id>-<processor>`), transactional ids and changelogs (`<id>-<processor>-<store>-changelog`).",
        trade_off: "A new id is a new application: it starts without state and without committed offsets.",
    },
    Setting {
        path: "application.state_dir",
        kind: Kind::Path,
        fallback: Fallback::Value("state"),
        example: "\"state\"",
        meaning: "Folder of the instance's identity, its stores and compiled plugins. Of one application, and of one process at a time.",
        trade_off: "When it is lost, the stores are restored from their changelogs.",
    },
    Setting {
        path: "application.commit_interval",
        kind: Kind::Duration { min: "1ms", max: "1h" },
        fallback: Fallback::Value("100ms"),
        example: "\"100ms\"",
        meaning: "Time between the starts of two commits. On Kafka at most a third of `log.transaction_timeout`.",
        trade_off: "Readers see outputs sooner with a shorter one; a commit costs about 5 ms on a local broker.",
    },
    Setting {
        path: "application.commit_bytes",
        kind: Kind::Size { min: "64KiB", max: "16GiB" },
        fallback: Fallback::Value("64MiB"),
        example: "\"64MiB\"",
        meaning: "Most bytes of uncommitted state, outputs and dead letters of one worker before it commits early.",
        trade_off: "Bounds memory (times `workers`); a small one commits more often under load.",
    },
    Setting {
        path: "application.delivery",
        kind: Kind::Choice(&["exactly-once", "at-least-once"]),
        fallback: Fallback::Value("exactly-once"),
        example: "\"exactly-once\"",
        meaning: "Whether outputs, changelog and offsets are committed in one transaction.",
        trade_off: "`at-least-once` shows outputs before the commit and repeats some after a crash.",
    },
    Setting {
        path: "application.workers",
        kind: Kind::Integer { min: 1, max: 1024 },
        fallback: Fallback::Without("one for each core"),
        example: "2",
        meaning: "Threads that run tasks; each owns one transactional producer.",
        trade_off: "More than partitions are of no use; each has buffers and a transaction of its own.",
    },
    Setting {
        path: "application.group_protocol",
        kind: Kind::Choice(&["classic", "consumer"]),
        fallback: Fallback::Value("classic"),
        example: "\"classic\"",
        meaning: "`classic`: groups with static members. `consumer`: the groups of KIP-848 with dynamic members.",
        trade_off: "With `classic` a restarted host takes its partitions back at once; with `consumer` the broker assigns, and its session time-out holds.",
    },
    Setting {
        path: "application.session_timeout",
        kind: Kind::Duration { min: "1s", max: "30m" },
        fallback: Fallback::Value("10s"),
        example: "\"10s\"",
        meaning: "Classic groups: how long a silent host keeps its partitions. The broker has bounds of its own (6 s to 30 min by default).",
        trade_off: "A long one survives long pauses; a short one lets others take over sooner.",
    },
    Setting {
        path: "application.shutdown_grace",
        kind: Kind::Duration { min: "1s", max: "1h" },
        fallback: Fallback::Value("30s"),
        example: "\"30s\"",
        meaning: "How long shutting down may take. What is not committed then is dropped, and processed again by whoever comes next.",
        trade_off: "Keep it below the time after which your service manager kills.",
    },
    Setting {
        path: "application.stuck_after",
        kind: Kind::Duration { min: "1s", max: "1h" },
        fallback: Fallback::Value("60s"),
        example: "\"60s\"",
        meaning: "A worker silent for half of this makes the host not live; silent for longer, it makes the host leave its groups and exit non-zero.",
        trade_off: "A short one finds a dead thread sooner, and takes a slow disk for one.",
    },
    Setting {
        path: "application.cache",
        kind: Kind::Size { min: "1MiB", max: "1024GiB" },
        fallback: Fallback::Value("256MiB"),
        example: "\"256MiB\"",
        meaning: "Block cache of all stores of the process together.",
        trade_off: "Memory for fewer reads from disk.",
    },
    Setting {
        path: "application.write_buffers",
        kind: Kind::Size { min: "1MiB", max: "1024GiB" },
        fallback: Fallback::Value("128MiB"),
        example: "\"128MiB\"",
        meaning: "Write buffers of all stores of the process together.",
        trade_off: "Memory for fewer and larger writes; more to restore after a crash.",
    },
    Setting {
        path: "application.plugin_stack",
        kind: Kind::Size { min: "64KiB", max: "16MiB" },
        fallback: Fallback::Value("512KiB"),
        example: "\"512KiB\"",
        meaning: "Stack of a plugin. One size for all plugins of the process. A call that wants more fails (`limit-stack`).",
        trade_off: "Plugins that recurse deeply need more; the process needs this much for each task whose plugin is at work.",
    },
    Setting {
        path: "admin.listen",
        kind: Kind::Text,
        fallback: Fallback::Value("127.0.0.1:0"),
        example: "\"127.0.0.1:9400\"",
        meaning: "Address and port of the admin surface; port 0 takes a free one. The bound address stands in `admin.json` in the state folder, where the command line finds it.",
        trade_off: "Elsewhere than on loopback it needs `token`, and TLS or `behind_proxy`.",
    },
    Setting {
        path: "admin.token",
        kind: Kind::Text,
        fallback: Fallback::Without("none is asked for, which is for loopback only"),
        example: "\"change-me\"",
        meaning: "The bearer token that every request but those for health must carry.",
        trade_off: "",
    },
    Setting {
        path: "admin.tls_certificate",
        kind: Kind::Path,
        fallback: Fallback::Without("no TLS"),
        example: "\"admin.crt\"",
        meaning: "A PEM file with the certificate of the admin surface and its chain. Together with `tls_key`.",
        trade_off: "",
    },
    Setting {
        path: "admin.tls_key",
        kind: Kind::Path,
        fallback: Fallback::Without("no TLS"),
        example: "\"admin.key\"",
        meaning: "A PEM file with the private key of `tls_certificate`.",
        trade_off: "",
    },
    Setting {
        path: "admin.behind_proxy",
        kind: Kind::Switch,
        fallback: Fallback::Value("false"),
        example: "false",
        meaning: "A proxy in front of the admin surface does TLS, so that it may listen elsewhere than on loopback without.",
        trade_off: "",
    },
    Setting {
        path: "admin.advertise",
        kind: Kind::Text,
        fallback: Fallback::Without("the bound address"),
        example: "\"https://host-1.example:9400\"",
        meaning: "The address by which others reach this host's admin surface: it is told to who asks another host for a key that this one holds.",
        trade_off: "",
    },
    Setting {
        path: "components.store",
        kind: Kind::Text,
        fallback: Fallback::Without("the folder `components` in `application.state_dir`"),
        example: "\"s3://pelton/components\"",
        meaning: "A folder, or the URL of an S3-compatible store (`s3://BUCKET/PREFIX`), that all hosts of the application reach.",
        trade_off: "Hosts on several machines need a common one: a host that cannot get a component that was deployed elsewhere waits, not ready.",
    },
    Setting {
        path: "components.properties",
        kind: Kind::StoreProperties,
        fallback: Fallback::Without("none"),
        example: "{ aws_region = \"eu-central-1\", aws_endpoint = \"http://127.0.0.1:9000\" }",
        meaning: "Properties of the store's client, by the names of the `object_store` crate, such as `aws_access_key_id`, `aws_secret_access_key`, `aws_region`, `aws_endpoint`, `aws_allow_http`.",
        trade_off: "",
    },
    Setting {
        path: "log.kind",
        kind: Kind::Choice(&["kafka", "local"]),
        fallback: Fallback::Required,
        example: "\"kafka\"",
        meaning: "`kafka`: Apache Kafka 4 or what speaks its protocol. `local`: topics in a folder, one process, nothing to install.",
        trade_off: "",
    },
    Setting {
        path: "log.brokers",
        kind: Kind::Text,
        fallback: Fallback::Without("needed with `kind = \"kafka\"`, refused with `\"local\"`"),
        example: "\"127.0.0.1:9092\"",
        meaning: "Brokers to ask first, as `host:port`, separated by commas.",
        trade_off: "Name more than one, so that one may be away at the start.",
    },
    Setting {
        path: "log.dir",
        kind: Kind::Path,
        fallback: Fallback::Without("needed with `kind = \"local\"`, refused with `\"kafka\"`"),
        example: "\"log\"",
        meaning: "Folder of the embedded log.",
        trade_off: "",
    },
    Setting {
        path: "log.create_topics",
        kind: Kind::Switch,
        fallback: Fallback::Value("false"),
        example: "true",
        meaning: "Whether missing topics are made, as `[topics]` says. Changelogs are always made.",
        trade_off: "Off, a misspelt topic is an error at the start; on, it becomes a new topic.",
    },
    Setting {
        path: "log.transaction_timeout",
        kind: Kind::Duration { min: "1s", max: "15m" },
        fallback: Fallback::Value("10s"),
        example: "\"10s\"",
        meaning: "Kafka: after how long the broker aborts the transaction of a silent host. The broker allows up to 15 min by default.",
        trade_off: "Readers wait as long for the records behind a dead host's transaction; a short one aborts the work of a host that was only paused.",
    },
    Setting {
        path: "log.fetch_memory",
        kind: Kind::Size { min: "1MiB", max: "1024GiB" },
        fallback: Fallback::Value("256MiB"),
        example: "\"256MiB\"",
        meaning: "Kafka: read-ahead of the whole process, divided among its partitions.",
        trade_off: "Memory for fewer pauses between fetches.",
    },
    Setting {
        path: "kafka.properties",
        kind: Kind::ClientProperties,
        fallback: Fallback::Without("none"),
        example: "{ \"client.id\" = \"orders-1\" }",
        meaning: "Any property of librdkafka by its name, quoted (`\"security.protocol\" = \"sasl_ssl\"`). Without effect on the embedded log.",
        trade_off: "Those that would break a promise are refused.",
    },
    Setting {
        path: "topics.<topic>.partitions",
        kind: Kind::Integer { min: 1, max: PARTITIONS_MAX },
        fallback: Fallback::Value("1"),
        example: "8",
        meaning: "Number of partitions. All inputs of one processor need the same.",
        trade_off: "The most tasks that can run at once; it cannot be changed for a processor with stores.",
    },
    Setting {
        path: "topics.<topic>.replication",
        kind: Kind::Integer { min: 1, max: 100 },
        fallback: Fallback::Without("the cluster's default"),
        example: "1",
        meaning: "Kafka: copies of each partition.",
        trade_off: "Three survive a broker; one is for trying things.",
    },
    Setting {
        path: "topics.<topic>.properties",
        kind: Kind::TopicProperties,
        fallback: Fallback::Without("none"),
        example: "{ \"retention.ms\" = 604800000 }",
        meaning: "Further settings of the topic by Kafka's names, quoted.",
        trade_off: "",
    },
    Setting {
        path: "processor.name",
        kind: Kind::Name,
        fallback: Fallback::Required,
        example: "\"order-counts\"",
        meaning: "Names the consumer group and the changelogs. No two processors share one.",
        trade_off: "A new name starts without state and without committed offsets.",
    },
    Setting {
        path: "processor.plugin",
        kind: Kind::Path,
        fallback: Fallback::Required,
        example: "\"order-counts.wasm\"",
        meaning: "The component, as `pelton build` leaves it.",
        trade_off: "",
    },
    Setting {
        path: "processor.watch",
        kind: Kind::Switch,
        fallback: Fallback::Value("false"),
        example: "false",
        meaning: "Whether a running host deploys the plugin's file when it has changed and is whole again.",
        trade_off: "For development and for hosts whose files are replaced by a tool; `pelton deploy` says what became of it.",
    },
    Setting {
        path: "processor.probation",
        kind: Kind::Duration { min: "1s", max: "24h" },
        fallback: Fallback::Value("30s"),
        example: "\"30s\"",
        meaning: "For how long a version that was deployed is rolled back by itself when it traps, breaks a limit or misses a deadline on a record that the version before it can do.",
        trade_off: "The version before it stays in memory for so long.",
    },
    Setting {
        path: "processor.dead_letter_topic",
        kind: Kind::Topic,
        fallback: Fallback::Without("`<id>-<processor>-dead-letters`, which is always made"),
        example: "\"orders-dead-letters\"",
        meaning: "Where records go that were given up, with the reason in their headers.",
        trade_off: "Readers of several processors' dead letters may share one.",
    },
    Setting {
        path: "processor.ordering",
        kind: Kind::Choice(&["partition", "key"]),
        fallback: Fallback::Value("partition"),
        example: "\"partition\"",
        meaning: "What waits while a record waits for its retry: its whole `partition`, or only the later records of its `key`, which are parked in a store of their own.",
        trade_off: "`key` lets other keys go on, and is refused for a plugin with a partition-scoped store; records without a key wait by partition with both.",
    },
    Setting {
        path: "processor.inputs.<input>",
        kind: Kind::TopicOrTable,
        fallback: Fallback::Required,
        example: "\"orders\"",
        meaning: "The topic that the plugin's input of this name reads. At least one.",
        trade_off: "",
    },
    Setting {
        path: "processor.inputs.<input>.topic",
        kind: Kind::Topic,
        fallback: Fallback::Required,
        example: "\"orders\"",
        meaning: "The topic.",
        trade_off: "",
    },
    Setting {
        path: "processor.inputs.<input>.start",
        kind: Kind::Choice(&["earliest", "latest"]),
        fallback: Fallback::Value("earliest"),
        example: "\"latest\"",
        meaning: "Where a partition without a committed offset begins, also one that is added later.",
        trade_off: "`latest` passes over what was written before the partition was first seen.",
    },
    Setting {
        path: "processor.outputs.<output>",
        kind: Kind::Topic,
        fallback: Fallback::Without("none"),
        example: "\"order-counts\"",
        meaning: "The topic that the plugin's output of this name writes.",
        trade_off: "",
    },
    Setting {
        path: "processor.settings",
        kind: Kind::Free,
        fallback: Fallback::Without("an empty table"),
        example: "{ minimum_cds = 1 }",
        meaning: "Handed to the plugin's `init` as JSON; `pelton check` and the start of a host try it once. What may stand here is the plugin's business.",
        trade_off: "",
    },
    Setting {
        path: "processor.limits.memory",
        kind: Kind::Size { min: "64KiB", max: "4GiB" },
        fallback: Fallback::Value("64MiB"),
        example: "\"64MiB\"",
        meaning: "Linear memory. A call that wants more fails.",
        trade_off: "The process may need this much for each of its tasks.",
    },
    Setting {
        path: "processor.limits.memory_keep",
        kind: Kind::Size { min: "64KiB", max: "4GiB" },
        fallback: Fallback::Value("4MiB"),
        example: "\"4MiB\"",
        meaning: "An instance with more linear memory than this after a call, and more than it began with, is replaced: linear memory never shrinks.",
        trade_off: "A large one keeps memory; a small one instantiates and calls `init` again and again.",
    },
    Setting {
        path: "processor.limits.record_deadline",
        kind: Kind::Duration { min: "1ms", max: "10m" },
        fallback: Fallback::Value("1s"),
        example: "\"1s\"",
        meaning: "Deadline of a call. A call that misses it is run again record by record, each record with this deadline.",
        trade_off: "Time that a looping record costs its partition (twice), and that a partition needs to be given away.",
    },
    Setting {
        path: "processor.limits.init_deadline",
        kind: Kind::Duration { min: "1ms", max: "10m" },
        fallback: Fallback::Value("5s"),
        example: "\"5s\"",
        meaning: "Deadline of instantiation and `init`.",
        trade_off: "",
    },
    Setting {
        path: "processor.limits.batch_records",
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        fallback: Fallback::Value("512"),
        example: "512",
        meaning: "Most records of one call.",
        trade_off: "Large batches cost less per record; small ones reach outputs sooner with slow plugins.",
    },
    Setting {
        path: "processor.limits.batch_bytes",
        kind: Kind::Size { min: "1KiB", max: "1GiB" },
        fallback: Fallback::Value("1MiB"),
        example: "\"1MiB\"",
        meaning: "Most bytes of one call. A larger record goes alone.",
        trade_off: "A batch is copied into the plugin's memory, so keep it well below `memory`.",
    },
    Setting {
        path: "processor.limits.emits",
        kind: Kind::Integer { min: 1, max: 100_000_000 },
        fallback: Fallback::Value("100000"),
        example: "100000",
        meaning: "Most outputs of one call, and most state writes of one call.",
        trade_off: "",
    },
    Setting {
        path: "processor.limits.output_bytes",
        kind: Kind::Size { min: "1KiB", max: "1GiB" },
        fallback: Fallback::Value("64MiB"),
        example: "\"64MiB\"",
        meaning: "Most bytes that a call may return (outputs, state writes and rejections together), and that one state read may carry.",
        trade_off: "The host holds this much for a call, beside the plugin's own memory.",
    },
    Setting {
        path: "processor.limits.log_lines",
        kind: Kind::Integer { min: 0, max: 1_000_000 },
        fallback: Fallback::Value("100"),
        example: "100",
        meaning: "Log lines that an instance may write per second; the rest are counted and dropped.",
        trade_off: "",
    },
    Setting {
        path: "processor.retry.first_delay",
        kind: Kind::Duration { min: "1ms", max: "1h" },
        fallback: Fallback::Value("100ms"),
        example: "\"100ms\"",
        meaning: "Longest wait before the first retry. Each wait is a random part of its bound, so that records that failed together do not come back together. A plugin may ask for a wait of its own.",
        trade_off: "",
    },
    Setting {
        path: "processor.retry.factor",
        kind: Kind::Factor { min: 1, max: 100 },
        fallback: Fallback::Value("2.0"),
        example: "2.0",
        meaning: "By how much the bound of each further wait grows.",
        trade_off: "",
    },
    Setting {
        path: "processor.retry.max_delay",
        kind: Kind::Duration { min: "1ms", max: "24h" },
        fallback: Fallback::Value("10s"),
        example: "\"10s\"",
        meaning: "Longest wait.",
        trade_off: "A long one is gentle to what is down, and late to see that it is back.",
    },
    Setting {
        path: "processor.retry.max_attempts",
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        fallback: Fallback::Value("10"),
        example: "10",
        meaning: "Calls with a record in all, the first included. After the last it becomes a dead letter. They are counted over restarts.",
        trade_off: "With the defaults a record is given up within about half a minute; its partition, or its key, waits as long.",
    },
    Setting {
        path: "processor.retry.codes",
        kind: Kind::Codes,
        fallback: Fallback::Without("none"),
        example: "{ \"card-service-down\" = \"stop\" }",
        meaning: "What is done about a failure of this code, instead of what its kind says: `\"retry\"`, `\"dead-letter\"` or `\"stop\"`. Any code may stand here, those of plugins too.",
        trade_off: "",
    },
    Setting {
        path: "processor.dead_letter.oversize",
        kind: Kind::Choice(&["truncate", "stop"]),
        fallback: Fallback::Value("truncate"),
        example: "\"truncate\"",
        meaning: "What is done where a record and its headers are larger than the dead-letter topic takes: `truncate` cuts the value, then the key, and says so in a header; `stop` halts the processor before the call that the record was in.",
        trade_off: "A cut letter cannot be replayed; the whole record is in its source topic as long as that keeps it.",
    },
    Setting {
        path: "processor.dead_letter.connect_headers",
        kind: Kind::Switch,
        fallback: Fallback::Value("false"),
        example: "true",
        meaning: "Whether dead letters also have the headers of Kafka Connect's error reporting (`__connect.errors.…`), for tools that look for those.",
        trade_off: "",
    },
    Setting {
        path: "processor.dead_letter.limit",
        kind: Kind::LetterLimit,
        fallback: Fallback::Without("no limit"),
        example: "\"20%\"",
        meaning: "More dead letters than this stop the processor (`dead-letter-limit`): a share of its records of the last minute, once they are at least 100, or a number per second, minute or hour. Each host counts its own.",
        trade_off: "A wrong plugin or input cannot drain a topic into the dead letters; a person must start the processor again.",
    },
    Setting {
        path: "processor.parking.records",
        kind: Kind::Integer { min: 1, max: 10_000_000 },
        fallback: Fallback::Value("10000"),
        example: "10000",
        meaning: "Most parked records of a task.",
        trade_off: "What is parked is kept in the state folder and its changelog; an index of it is in memory.",
    },
    Setting {
        path: "processor.parking.bytes",
        kind: Kind::Size { min: "64KiB", max: "64GiB" },
        fallback: Fallback::Value("64MiB"),
        example: "\"64MiB\"",
        meaning: "Most bytes of parked records of a task.",
        trade_off: "",
    },
];

/// The setting with exactly this pattern.
pub fn find(pattern: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.path == pattern)
}

/// The pattern that `key` has below `pattern`: its own name, or a wildcard. `None` where nothing of that name is known there.
pub(super) fn child(pattern: &str, key: &str) -> Option<String> {
    let names: Vec<&str> = children(pattern).collect();
    let name = names.iter().find(|n| **n == key).or_else(|| names.iter().find(|n| n.starts_with('<')))?;
    Some(below(pattern, name))
}

/// The names (and wildcards) known right below a pattern; may repeat.
pub(super) fn children(pattern: &str) -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter_map(move |s| {
        let rest = if pattern.is_empty() { s.path } else { s.path.strip_prefix(pattern)?.strip_prefix('.')? };
        rest.split('.').next()
    })
}

/// The pattern above, empty at the top, and the last name.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

pub(super) fn below(pattern: &str, name: &str) -> String {
    if pattern.is_empty() { name.to_owned() } else { format!("{pattern}.{name}") }
}

/// How the section of a pattern is opened in a file.
pub(super) fn header(section: &str) -> String {
    match section {
        "processor" => "[[processor]]".to_owned(),
        _ => format!("[{section}]"),
    }
}
