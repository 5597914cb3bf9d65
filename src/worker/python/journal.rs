//! The file that a child shares with its supervisor: answers that are not on their way yet, and what each thread runs.
//! It outlives the child, so that a crash costs what ran at that moment and nothing that had ended.

use chrono::{DateTime, Utc};
use rustix::io::pread;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Where the text belongs in the stream of answers, and how long it is.
const HEAD: usize = 16;
/// A thread's task: when it started, its number.
const SLOT: usize = 16;
/// Room for answers.
const ROOM: usize = 256 << 10;

/// One child's journal.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    threads: usize,
}

/// A task that a thread has begun.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Begun {
    pub number: u64,
    pub at: DateTime<Utc>,
}

impl Journal {
    /// An empty one, without a name in any folder.
    pub fn new(threads: usize) -> io::Result<Self> {
        let file = nameless()?;
        file.set_len((HEAD + SLOT * threads + ROOM) as u64)?;
        Ok(Self { file, threads })
    }

    /// For the child to inherit.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What each thread began last, whether or not it has ended.
    pub fn begun(&self) -> Vec<Begun> {
        let mut slots = vec![0; SLOT * self.threads];
        if !self.read(&mut slots, HEAD) {
            return Vec::new();
        }
        let slot = |bytes: &[u8]| {
            let at = f64::from_ne_bytes(bytes[..8].try_into().ok()?);
            let number = u64::from_ne_bytes(bytes[8..].try_into().ok()?);
            (number > 0).then_some(())?;
            Some(Begun { number, at: super::answer::moment(at)? })
        };
        slots.chunks_exact(SLOT).filter_map(slot).collect()
    }

    /// The end of the stream of answers that is not among the first `received` bytes. Only for a child that is dead.
    pub fn rest(&self, received: u64) -> Vec<u8> {
        let mut head = [0; HEAD];
        if !self.read(&mut head, 0) {
            return Vec::new();
        }
        let number = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let (base, used) = (number(0), number(8));
        let sent = received.saturating_sub(base);
        if base > received || used > ROOM as u64 || sent >= used {
            return Vec::new();
        }
        let mut text = vec![0; (used - sent) as usize];
        if self.read(&mut text, HEAD + SLOT * self.threads + sent as usize) { text } else { Vec::new() }
    }

    fn read(&self, into: &mut [u8], at: usize) -> bool {
        pread(&self.file, &mut *into, at as u64).is_ok_and(|read| read == into.len())
    }
}

#[cfg(target_os = "linux")]
fn nameless() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("threadmill-journal", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("threadmill-journal-{}", uuid::Uuid::new_v4()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn what_was_not_sent_is_found_wherever_the_stream_broke() {
        let journal = Journal::new(2).unwrap();
        assert_eq!((journal.rest(0), journal.begun()), (Vec::new(), Vec::new()));
        let data = (HEAD + 2 * SLOT) as u64;
        journal.file.write_all_at(b"answers", data).unwrap();
        journal.file.write_all_at(&[100u64.to_ne_bytes(), 7u64.to_ne_bytes()].concat(), 0).unwrap();
        journal.file.write_all_at(&[1.5f64.to_ne_bytes(), 42u64.to_ne_bytes()].concat(), 32).unwrap();
        assert_eq!(journal.rest(100), b"answers");
        assert_eq!(journal.rest(103), b"wers");
        assert!(journal.rest(107).is_empty() && journal.rest(99).is_empty() && journal.rest(500).is_empty());
        assert_eq!(journal.begun()[0].number, 42);
    }
}
