//! Changes to an application between two runs, and what its groups have committed.

use crate::app::App;
use crate::kafka;
use crate::letter::settled;
use crate::record::Rec;
use toml::{Table, Value};

impl App {
    /// Sets a key of the first processor, by its path; the next start sees it.
    pub fn set_processor(&self, keys: &[&str], value: impl Into<Value>) {
        let text = std::fs::read_to_string(self.file()).expect("the application file");
        let mut application: Table = text.parse().expect("TOML");
        let processors = application.get_mut("processor").and_then(Value::as_array_mut).expect("processors");
        let (last, parents) = keys.split_last().expect("a path");
        let mut table = processors[0].as_table_mut().expect("a table");
        for key in parents {
            let entry = table.entry(*key).or_insert_with(|| Value::Table(Table::new()));
            table = entry.as_table_mut().expect("a table");
        }
        table.insert((*last).to_owned(), value.into());
        std::fs::write(self.file(), toml::to_string(&application).expect("TOML")).expect("the application file");
    }

    /// What the group of a processor has committed of `in`, by partition. Kafka only.
    pub fn committed(&self, processor: &str) -> Vec<Option<i64>> {
        kafka::committed(&self.group(processor), &self.topic("in"))
    }

    /// The changelog of the records that wait for others of their key.
    pub fn parked(&self, processor: &str) -> String {
        self.changelog(processor, "pelton-parked")
    }

    /// A topic's records without what differs from run to run: times, stacks, and the application's id in headers.
    pub fn read_settled(&self, topic: &str) -> Vec<Rec> {
        let anonymous = |value: Option<Vec<u8>>| {
            value.map(|bytes| match String::from_utf8(bytes) {
                Ok(text) => text.replace(&self.id, "app").into_bytes(),
                Err(error) => error.into_bytes(),
            })
        };
        let record = |record: Rec| {
            let mut record = settled(record);
            record.headers.iter_mut().for_each(|(_, value)| *value = anonymous(value.take()));
            record
        };
        self.read(topic).into_iter().map(record).collect()
    }
}
