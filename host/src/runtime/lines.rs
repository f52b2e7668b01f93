//! Lines on their way to standard error. A thread of its own writes them, so that neither a full disk, nor a pipe that nobody reads,
//! ends or stops whoever has something to say.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a line is waited for, so that what a process said before it died is there. Once that was in vain, nobody waits until
/// something was taken again.
const PATIENCE: Duration = Duration::from_millis(50);
/// Bytes that may wait. What comes on top is lost, and counted.
const ROOM: usize = 1 << 20;

/// Takes lines and never fails. Clones share one way.
#[derive(Clone)]
pub struct Lines {
    way: Arc<Way>,
}

#[derive(Default)]
struct Way {
    state: Mutex<State>,
    come: Condvar,
    gone: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines that came, and those of them that are gone: written, or refused by whoever should take them.
    come: u64,
    gone: u64,
    lost: u64,
    stalled: bool,
}

impl Lines {
    /// Lines that `to` is given, one call of the writer after the other.
    pub fn to(to: impl Write + Send + 'static) -> io::Result<Lines> {
        let way = Arc::new(Way::default());
        let own = way.clone();
        std::thread::Builder::new().name("lines".into()).spawn(move || own.carry(to))?;
        Ok(Lines { way })
    }

    /// Takes one line, with its end.
    pub fn say(&self, line: &[u8]) {
        let mut state = self.way.state();
        if !state.waiting.is_empty() && state.waiting.len() + line.len() > ROOM {
            state.lost += 1;
            return;
        }
        state.waiting.extend_from_slice(line);
        state.come += 1;
        self.way.come.notify_one();
        if !state.stalled {
            self.way.see_off(state, PATIENCE);
        }
    }

    /// Waits for what was said, at most so long.
    pub fn drain(&self, most: Duration) {
        self.way.see_off(self.way.state(), most);
    }

    /// How many lines nobody will read.
    pub fn lost(&self) -> u64 {
        self.way.state().lost
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.say(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Way {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until what has come so far is gone.
    fn see_off(&self, state: MutexGuard<'_, State>, most: Duration) {
        let last = state.come;
        let here = |state: &mut State| state.gone < last;
        let waited = self.gone.wait_timeout_while(state, most, here);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.stalled = state.gone < last;
    }

    fn carry(&self, mut to: impl Write) {
        loop {
            let (lines, come, gone) = self.take();
            let written = to.write_all(&lines).and_then(|()| to.flush());
            let mut state = self.state();
            state.gone = come;
            state.stalled = false;
            if written.is_err() {
                state.lost += come - gone;
            }
            self.gone.notify_all();
        }
    }

    /// What waits, once something does.
    fn take(&self) -> (Vec<u8>, u64, u64) {
        let waited = self.come.wait_while(self.state(), |state| state.waiting.is_empty());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut state.waiting), state.come, state.gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Clock, SystemClock};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Writes what it is allowed to.
    struct Pipe {
        allowed: Receiver<bool>,
        read: Arc<Mutex<String>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !self.allowed.recv().unwrap_or(true) {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.read.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn pipe() -> (Lines, Sender<bool>, Arc<Mutex<String>>) {
        let (allow, allowed) = channel();
        let read = Arc::new(Mutex::new(String::new()));
        (Lines::to(Pipe { allowed, read: read.clone() }).unwrap(), allow, read)
    }

    #[test]
    fn a_line_is_there_when_its_speaker_goes_on() {
        let (lines, allow, read) = pipe();
        drop(allow);
        for n in 0..100 {
            lines.say(b"x\n");
            assert_eq!(read.lock().unwrap().len(), 2 * (n + 1));
        }
        assert_eq!(lines.lost(), 0);
    }

    #[test]
    fn what_cannot_be_written_is_lost_and_ends_nobody() {
        let (mut lines, allow, read) = pipe();
        allow.send(false).unwrap();
        assert!(writeln!(lines, "first").is_ok());
        lines.drain(Duration::from_secs(60));
        assert_eq!(lines.lost(), 1);
        drop(allow);
        lines.say(b"second\n");
        lines.drain(Duration::from_secs(60));
        assert_eq!((&**read.lock().unwrap(), lines.lost()), ("second\n", 1));
    }

    #[test]
    fn who_does_not_read_holds_nobody_up() {
        let (lines, allow, read) = pipe();
        let clock = SystemClock::default();
        let line = [b'x'; 1000];
        (0..2000).for_each(|_| lines.say(&line));
        assert!(clock.monotonic() < Duration::from_secs(10), "one patience, not 2000: {:?}", clock.monotonic());
        let lost = lines.lost();
        assert!(lost > 900, "more than there is room for: {lost} lost");
        drop(allow);
        lines.drain(Duration::from_secs(60));
        lines.say(b"again\n");
        let read = read.lock().unwrap();
        assert!(read.ends_with("again\n"));
        assert_eq!((read.len(), lines.lost()), ((2000 - lost as usize) * 1000 + 6, lost));
    }
}
