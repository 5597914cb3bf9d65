//! User data as a filter looks into it: raw JSON, read where it is asked for and nowhere else.

use crate::backend::codec::{decode_string, list_items, object_fields};
use std::borrow::Cow;

/// Values that one path finds at most.
const FOUND_MAX: usize = 64;

/// The raw values at `path` below this value. A part is a key of an object or a place in a list; `*` is every one.
pub fn at_path<'a>(raw: &'a str, path: &[String]) -> Vec<&'a str> {
    let mut found = vec![raw.trim()];
    for part in path {
        found = found.into_iter().flat_map(|raw| step(raw, part)).take(FOUND_MAX).collect();
    }
    found
}

fn step<'a>(raw: &'a str, part: &str) -> Vec<&'a str> {
    match raw.as_bytes().first() {
        Some(b'{') => {
            let fields = object_fields(raw).unwrap_or_default();
            fields.into_iter().filter(|(key, _)| part == "*" || key == part).map(|(_, value)| value).collect()
        }
        Some(b'[') => {
            let items = list_items(raw).unwrap_or_default();
            match part {
                "*" => items,
                _ => part.parse().ok().and_then(|at: usize| items.get(at).copied()).into_iter().collect(),
            }
        }
        _ => Vec::new(),
    }
}

/// The values of `args.PATH`: by position in the arguments, by name in the keyword arguments, and by name in arguments
/// that are objects.
pub fn in_arguments<'a>(args: &'a str, kwargs: &'a str, path: &[String]) -> Vec<&'a str> {
    let mut found = at_path(args, path);
    found.extend(at_path(kwargs, path));
    if path.first().is_some_and(|first| first.parse::<usize>().is_err() && first != "*") {
        found.extend(list_items(args).unwrap_or_default().into_iter().flat_map(|item| at_path(item, path)));
    }
    found
}

/// A value as it is compared with what was typed: strings without their quotes, everything else as it stands.
pub fn plain(raw: &str) -> Cow<'_, str> {
    decode_string(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn paths_lead_through_objects_and_lists() {
        let raw = r#"{"user": {"id": 42, "tags": ["a", "b"]}, "id": NaN}"#;
        assert_eq!(at_path(raw, &path("user.id")), ["42"]);
        assert_eq!(at_path(raw, &path("user.tags.1")), ["\"b\""]);
        assert_eq!(at_path(raw, &path("user.tags.*")), ["\"a\"", "\"b\""]);
        assert_eq!(at_path(raw, &path("id")), ["NaN"]);
        assert!(at_path(raw, &path("user.name")).is_empty());
        assert!(at_path("not json", &path("a")).is_empty());
    }

    #[test]
    fn an_argument_is_found_by_place_and_by_name() {
        let (args, kwargs) = (r#"[8123, {"user_id": 7}]"#, r#"{"user_id": 42}"#);
        assert_eq!(in_arguments(args, kwargs, &path("0")), ["8123"]);
        assert_eq!(in_arguments(args, kwargs, &path("user_id")), ["42", "7"]);
    }
}
