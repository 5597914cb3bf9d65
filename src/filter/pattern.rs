//! Words to look for. Letters match in either case; `*` stands for any run of characters and `?` for one.

/// A word to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// In lower case.
    text: String,
    has_wildcards: bool,
}

impl Pattern {
    /// Reads a pattern; in a quoted one, `*` and `?` mean themselves.
    pub fn new(text: &str, quoted: bool) -> Self {
        Self { text: text.to_lowercase(), has_wildcards: !quoted && text.contains(['*', '?']) }
    }

    /// Whether the whole text is meant.
    pub fn is_whole(&self, text: &str) -> bool {
        if self.has_wildcards {
            return wild(&self.text, &text.to_lowercase());
        }
        text.len() == self.text.len() && text.is_ascii() && text.eq_ignore_ascii_case(&self.text)
            || !text.is_ascii() && text.to_lowercase() == self.text
    }

    /// Whether the text holds it somewhere.
    pub fn is_within(&self, text: &str) -> bool {
        if self.has_wildcards {
            return wild(&format!("*{}*", self.text), &text.to_lowercase());
        }
        contains(text, &self.text)
    }

    /// Whether a dotted name is meant: the whole of it, or some of its parts one after the other.
    pub fn is_name(&self, name: &str) -> bool {
        if self.has_wildcards {
            let name = name.to_lowercase();
            return wild(&self.text, &name) || name.rsplit('.').next().is_some_and(|last| wild(&self.text, last));
        }
        bounded(&name.to_lowercase(), &self.text, |c| c == '.')
    }

    /// Whether a word such as a worker's id is meant: `web1` means `web1-4711-c0ffee` and not `web12-4711`.
    pub fn is_word(&self, word: &str) -> bool {
        if self.has_wildcards {
            return wild(&self.text, &word.to_lowercase());
        }
        bounded(&word.to_lowercase(), &self.text, |c| !c.is_alphanumeric())
    }
}

/// Whether `part` stands in `text` between ends of the text and boundaries.
fn bounded(text: &str, part: &str, boundary: impl Fn(char) -> bool) -> bool {
    text.match_indices(part).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        before.is_none_or(&boundary) && after.is_none_or(&boundary)
    })
}

/// Whether `text` holds `part`, which is in lower case, in either case.
fn contains(text: &str, part: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(part);
    }
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty() || text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// Whether the whole text is what the pattern says. Goes back to the last `*` only, so its time is bounded by the
/// product of both lengths.
fn wild(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    t = from + 1;
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_their_parts() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(Pattern::new(pattern, false).is_name(name), expected, "{pattern} in {name}");
        };
        check("ConnectionError", "builtins.ConnectionError", true);
        check("connectionerror", "builtins.ConnectionError", true);
        check("Error", "builtins.ConnectionError", false);
        check("shop.tasks", "shop.tasks.welcome_email", true);
        check("shop.*", "shop.tasks.welcome_email", true);
        check("*Error", "builtins.ConnectionError", true);
        check("welcome_*", "shop.tasks.welcome_email", true);
        check("shop.?", "shop.tasks", false);
    }

    #[test]
    fn words_end_where_they_end() {
        let check = |pattern: &str, word: &str, expected: bool| {
            assert_eq!(Pattern::new(pattern, false).is_word(word), expected, "{pattern} in {word}");
        };
        check("web1", "web1-4711-c0ffee", true);
        check("web1", "web12-4711", false);
        check("web*", "web12-4711", true);
        check("4711", "web1-4711-c0ffee", true);
    }

    #[test]
    fn texts_in_either_case() {
        assert!(Pattern::new("timed OUT", false).is_within("The request Timed out."));
        assert!(Pattern::new("größe", false).is_within("die GRÖSSE? die GRÖßE!"));
        assert!(Pattern::new("a*c", true).is_within("xa*cx") && !Pattern::new("a*c", true).is_within("abc"));
        assert!(Pattern::new("t?med", false).is_within("timed"));
        assert!(Pattern::new("", false).is_within("anything"));
        // What would take a careless matcher for ever.
        assert!(!wild(&"*a".repeat(40), &"ab".repeat(1_000)));
    }
}
