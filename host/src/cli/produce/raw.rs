//! One line is one value.

use super::Records;
use super::chunk::Chunk;
use std::io::{BufRead, BufReader, Read};

pub(super) struct Values {
    input: BufReader<Box<dyn Read>>,
    line: u64,
    now: i64,
    buffer: Vec<u8>,
}

impl Values {
    pub(super) fn new(input: BufReader<Box<dyn Read>>, now: i64) -> Self {
        Values { input, line: 0, now, buffer: vec![] }
    }
}

impl Records for Values {
    fn next(&mut self, chunk: &mut Chunk) -> anyhow::Result<bool> {
        self.buffer.clear();
        self.line += 1;
        if self.input.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(false);
        }
        let value = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        chunk.push_plain(self.line, None, Some(value), self.now);
        Ok(true)
    }
}
