//! Lease tokens.

use std::fmt;

/// 128 random bits of the operating system's generator, as 32 hexadecimal digits: the fence of a lease.
///
/// A token that the server's own generator made could repeat, and then a late holder could end another's lease.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(String);

impl Token {
    /// A fresh one.
    #[expect(clippy::new_without_default, reason = "a token is drawn, not defaulted")]
    pub fn new() -> Self {
        let mut bits = [0; 16];
        // Without the system's generator no lease is safe: better to stop than to go on with a guess.
        getrandom::fill(&mut bits).expect("the operating system's random generator answers");
        Self(format!("{:032x}", u128::from_be_bytes(bits)))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A token opens a lease: logs show that there is one, not which.
        f.write_str("Token(…)")
    }
}
