//! One line is one record as JSON, as `consume --format jsonl` prints it.

use super::Records;
use super::chunk::{Chunk, column};
use crate::cli::line::Line;
use crate::model::bytes::Bytes;
use crate::model::{HeadersRef, RecordRef};
use anyhow::Context;
use std::io::{BufRead, BufReader, Read};

pub(super) struct Lines {
    input: BufReader<Box<dyn Read>>,
    line: u64,
    now: i64,
    buffer: Vec<u8>,
}

impl Lines {
    pub(super) fn new(input: BufReader<Box<dyn Read>>, now: i64) -> Self {
        Lines { input, line: 0, now, buffer: vec![] }
    }

    /// Reads the next line that is not blank. False at the end.
    fn read(&mut self) -> std::io::Result<bool> {
        loop {
            self.buffer.clear();
            self.line += 1;
            if self.input.read_until(b'\n', &mut self.buffer)? == 0 {
                return Ok(false);
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }
}

impl Records for Lines {
    fn next(&mut self, chunk: &mut Chunk) -> anyhow::Result<bool> {
        if !self.read()? {
            return Ok(false);
        }
        let line: Line<'_> =
            serde_json::from_slice(&self.buffer).with_context(|| format!("line {}: not a record", self.line))?;
        let names = column(line.headers.iter().map(|(name, _)| Some(&*name.0)));
        let values = column(line.headers.iter().map(|(_, value)| value.as_ref().map(|v| &*v.0)));
        let record = RecordRef {
            key: bytes(&line.key),
            value: bytes(&line.value),
            headers: HeadersRef::new(names.view(), values.view()),
            timestamp: line.timestamp.unwrap_or(self.now),
        };
        chunk.push(self.line, line.partition, record);
        Ok(true)
    }
}

fn bytes<'a>(field: &'a Option<Bytes<'_>>) -> Option<&'a [u8]> {
    field.as_ref().map(|b| &*b.0)
}
