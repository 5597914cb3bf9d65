//! The frames between the supervisor and a child: a length, a kind, a number, a payload. `assets/child.py` has the list.

use crate::task::TaskRecord;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Length (4), kind (1), number (8).
const HEADER: usize = 13;
/// The longest payload that is accepted: the largest record, with its frame, has room in it.
pub(crate) const LARGEST: usize = 96 << 20;

/// What a frame from a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Versions and settings, or what went wrong.
    Hello,
    /// A task returned.
    Done,
    /// A task failed.
    Failed,
    /// These have not been started, and never will be by this child.
    Unstarted,
    /// The answer to a question.
    Answer,
    /// A log record.
    Log,
}

/// One frame from a child.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub kind: Kind,
    pub number: u64,
    pub payload: Bytes,
}

/// Why a child's stream makes no sense. The child is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} bytes, longer than any record")]
    TooLong(usize),
    #[error("a frame of the unknown kind {0}")]
    UnknownKind(u8),
}

/// Takes the next whole frame out of what has arrived.
pub(crate) fn decode(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    if buffer.len() < HEADER {
        return Ok(None);
    }
    let mut head = &buffer[..HEADER];
    let (length, kind, number) = (head.get_u32() as usize, head.get_u8(), head.get_u64());
    if length > LARGEST {
        return Err(FrameError::TooLong(length));
    }
    let kind = match kind {
        b'H' => Kind::Hello,
        b'D' => Kind::Done,
        b'E' => Kind::Failed,
        b'U' => Kind::Unstarted,
        b'A' => Kind::Answer,
        b'L' => Kind::Log,
        other => return Err(FrameError::UnknownKind(other)),
    };
    if buffer.len() < HEADER + length {
        buffer.reserve(HEADER + length - buffer.len());
        return Ok(None);
    }
    buffer.advance(HEADER);
    Ok(Some(Frame { kind, number, payload: buffer.split_to(length).freeze() }))
}

/// Writes a frame to a child.
pub(crate) fn encode(out: &mut BytesMut, kind: u8, number: u64, payload: &[u8]) {
    out.reserve(HEADER + payload.len());
    out.put_u32(payload.len() as u32);
    out.put_u8(kind);
    out.put_u64(number);
    out.put_slice(payload);
}

const TAKES_CONTEXT: u8 = 1;
const RETRY_CALLBACK: u8 = 2;
const RETRY_BACKOFF: u8 = 4;

/// Writes the frame that makes a child run a task. `text` is its record, with the attempt's worker in it.
pub(crate) fn encode_run(out: &mut BytesMut, number: u64, record: &TaskRecord, text: &str) {
    use crate::task::Retry;
    let spec = &record.spec;
    let flags = if spec.takes_context { TAKES_CONTEXT } else { 0 }
        | match &spec.retry {
            None => 0,
            Some(Retry::Callback(..)) => RETRY_CALLBACK,
            Some(Retry::Backoff(..)) => RETRY_BACKOFF,
        };
    let parts = [record.id.as_str(), &spec.queue_name, &spec.func, record.args.as_str(), record.kwargs.as_str()];
    let length = 1 + 4 * parts.len() + parts.iter().map(|part| part.len()).sum::<usize>() + text.len();
    out.reserve(HEADER + length);
    out.put_u32(length as u32);
    out.put_u8(b'R');
    out.put_u64(number);
    out.put_u8(flags);
    let mut end = 0;
    for part in parts {
        end += part.len();
        out.put_u32(end as u32);
    }
    for part in parts {
        out.put_slice(part.as_bytes());
    }
    out.put_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_is_taken_once_all_of_it_is_there() {
        let mut stream = BytesMut::new();
        encode(&mut stream, b'D', 7, b"null");
        encode(&mut stream, b'L', 0, b"");
        let whole = stream.split();
        for cut in 0..whole.len() {
            let mut buffer = BytesMut::from(&whole[..cut]);
            let before = (cut >= HEADER + 4) as usize;
            let mut found = 0;
            while let Some(frame) = decode(&mut buffer).unwrap() {
                assert_eq!((frame.kind, frame.number, &frame.payload[..]), (Kind::Done, 7, &b"null"[..]));
                found += 1;
            }
            assert_eq!(found, before, "{cut}");
        }
    }

    #[test]
    fn what_no_child_of_ours_sends_is_refused() {
        let mut stream = BytesMut::new();
        encode(&mut stream, b'?', 1, b"");
        assert_eq!(decode(&mut stream), Err(FrameError::UnknownKind(b'?')));
        let mut stream = BytesMut::from(&b"\xff\xff\xff\xffD\0\0\0\0\0\0\0\0"[..]);
        assert_eq!(decode(&mut stream), Err(FrameError::TooLong(0xffff_ffff)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            let mut stream = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = decode(&mut stream) {}
        }
    }
}
