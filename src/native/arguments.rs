//! Arguments between Rust's types and Python's calls.
//!
//! Going out, the JSON of a struct or map becomes the keyword arguments and that of a tuple or list the positional ones.
//! Coming in, the type is asked what it wants: a struct takes keyword arguments, and positional ones in the order of its
//! fields, as a Python function would.

use crate::backend::codec::{list_items, object_fields};
use crate::native::json::to_python;
use crate::task::RawJson;
use serde::Serialize;
use serde::de::value::{BorrowedStrDeserializer, F64Deserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;
use std::fmt;

/// Why arguments do not fit, naming the one that does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError(String);

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgumentError {}

impl de::Error for ArgumentError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("the argument `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self(format!("the argument `{field}` is given twice"))
    }
}

/// The positional and keyword arguments that a value stands for.
pub(crate) fn split(arguments: &impl Serialize) -> Result<(RawJson, RawJson), ArgumentError> {
    let text = to_python(arguments).map_err(|e| ArgumentError(e.to_string()))?;
    Ok(match text.as_bytes().first() {
        Some(b'{') => (RawJson::empty_list(), RawJson::new(text)),
        Some(b'[') => (RawJson::new(text), RawJson::empty_object()),
        _ if text == "null" => (RawJson::empty_list(), RawJson::empty_object()),
        _ => (RawJson::new(format!("[{text}]")), RawJson::empty_object()),
    })
}

/// Reads stored arguments as `A`.
pub(crate) fn join<A: DeserializeOwned>(args: &RawJson, kwargs: &RawJson) -> Result<A, ArgumentError> {
    let broken = |what: &str, e: crate::backend::codec::JsonError| ArgumentError(format!("{what} cannot be read: {e}"));
    let args = list_items(args.as_str()).map_err(|e| broken("args", e))?;
    let kwargs = object_fields(kwargs.as_str()).map_err(|e| broken("kwargs", e))?;
    A::deserialize(Arguments { args, kwargs })
}

struct Arguments<'a> {
    args: Vec<&'a str>,
    kwargs: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Arguments<'a> {
    /// Refuses keyword arguments where only positional ones are taken.
    fn positional(self) -> Result<Vec<&'a str>, ArgumentError> {
        match self.kwargs.first() {
            None => Ok(self.args),
            Some((name, _)) => {
                Err(ArgumentError(format!("unexpected argument `{name}`: this task takes none by name")))
            }
        }
    }

    fn sequence<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        let args = self.positional()?;
        let mut items = Items { count: args.len(), rest: args.into_iter(), at: 0 };
        let value = visitor.visit_seq(&mut items)?;
        match items.rest.len() {
            0 => Ok(value),
            more => Err(ArgumentError(format!(
                "{} positional arguments are given and {} taken",
                items.count,
                items.count - more
            ))),
        }
    }
}

/// The whole of the arguments, as the type asks for them.
impl<'a> Deserializer<'a> for Arguments<'a> {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        if self.args.is_empty() && !self.kwargs.is_empty() {
            return self.deserialize_map(visitor);
        }
        let args = self.positional()?;
        match args[..] {
            [one] => value(one, visitor).map_err(|e| named("argument 1", e)),
            _ => Err(ArgumentError(format!("{} positional arguments are given and 1 taken", args.len()))),
        }
    }

    fn deserialize_unit<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        let args = self.positional()?;
        if args.is_empty() {
            visitor.visit_unit()
        } else {
            Err(ArgumentError("arguments are given and none taken".into()))
        }
    }

    fn deserialize_unit_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        if self.args.is_empty() && self.kwargs.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        self.sequence(visitor)
    }

    fn deserialize_tuple<V: Visitor<'a>>(self, _len: usize, visitor: V) -> Result<V::Value, ArgumentError> {
        self.sequence(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        self.sequence(visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.args.len() {
            0 => visitor.visit_map(Fields { rest: self.kwargs.into_iter(), current: None }),
            count => Err(ArgumentError(format!("{count} positional arguments are given and none taken"))),
        }
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        if self.args.len() > fields.len() {
            return Err(ArgumentError(format!(
                "{} positional arguments are given and at most {} taken",
                self.args.len(),
                fields.len()
            )));
        }
        let by_place = fields.iter().zip(self.args).map(|(name, value)| (Cow::Borrowed(*name), value));
        let all: Vec<_> = by_place.chain(self.kwargs).collect();
        visitor.visit_map(Fields { rest: all.into_iter(), current: None })
    }

    forward_to_deserialize_any! {
        <W: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf enum identifier ignored_any
    }
}

struct Items<'a> {
    rest: std::vec::IntoIter<&'a str>,
    count: usize,
    at: usize,
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = ArgumentError;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, ArgumentError> {
        let Some(text) = self.rest.next() else { return Ok(None) };
        self.at += 1;
        seed.deserialize(One(text)).map(Some).map_err(|e| named(&format!("argument {}", self.at), e))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Fields<'a> {
    rest: std::vec::IntoIter<(Cow<'a, str>, &'a str)>,
    current: Option<(Cow<'a, str>, &'a str)>,
}

impl<'a> MapAccess<'a> for Fields<'a> {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, ArgumentError> {
        self.current = self.rest.next();
        match &self.current {
            None => Ok(None),
            Some((Cow::Borrowed(name), _)) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            Some((Cow::Owned(name), _)) => seed.deserialize(name.as_str().into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<T::Value, ArgumentError> {
        // Asked for only after a key was given.
        let Some((name, text)) = self.current.take() else {
            return Err(ArgumentError("a value without a name".into()));
        };
        seed.deserialize(One(text)).map_err(|e| {
            if e.0 == UNEXPECTED {
                ArgumentError(format!("unexpected argument `{name}`"))
            } else {
                named(&format!("the argument `{name}`"), e)
            }
        })
    }
}

const UNEXPECTED: &str = "unexpected argument";

fn named(what: &str, error: ArgumentError) -> ArgumentError {
    ArgumentError(format!("{what}: {}", error.0))
}

/// One argument.
struct One<'a>(&'a str);

/// Reads one value; where JSON has no word for it and Python has one, the number that it is.
fn value<'a, V: Visitor<'a>>(text: &'a str, visitor: V) -> Result<V::Value, ArgumentError> {
    let number = match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    };
    if let Some(number) = number {
        return Deserializer::deserialize_any(F64Deserializer::<ArgumentError>::new(number), visitor);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_any(visitor).map_err(json_error)
}

/// The message without the place: the text is one argument, and its lines are nobody's.
fn json_error(error: serde_json::Error) -> ArgumentError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    ArgumentError(text.strip_suffix(&place).unwrap_or(&text).to_owned())
}

impl<'a> Deserializer<'a> for One<'a> {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        value(self.0, visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        if self.0 == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        serde_json::Deserializer::from_str(self.0).deserialize_newtype_struct(name, visitor).map_err(json_error)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        serde_json::Deserializer::from_str(self.0).deserialize_enum(name, variants, visitor).map_err(json_error)
    }

    /// A derived struct asks for this where it does not know the name: an argument that the task does not take.
    fn deserialize_ignored_any<V: Visitor<'a>>(self, _visitor: V) -> Result<V::Value, ArgumentError> {
        Err(ArgumentError(UNEXPECTED.into()))
    }

    fn deserialize_f32<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        value(self.0, visitor)
    }

    fn deserialize_bytes<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        serde_json::Deserializer::from_str(self.0).deserialize_bytes(visitor).map_err(json_error)
    }

    forward_to_deserialize_any! {
        <W: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f64 char str string byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Resize {
        image: String,
        width: u32,
        #[serde(default)]
        crop: Option<Crop>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Crop {
        Square,
        Box(u32, u32),
    }

    fn read<A: DeserializeOwned>(args: &str, kwargs: &str) -> Result<A, String> {
        join(&RawJson::new(args), &RawJson::new(kwargs)).map_err(|e| e.to_string())
    }

    #[test]
    fn a_struct_is_keywords_a_tuple_positions_and_unit_nothing() {
        let texts = |(args, kwargs): (RawJson, RawJson)| (args.to_string(), kwargs.to_string());
        let resize = Resize { image: "ä".into(), width: 3, crop: None };
        let (args, kwargs) = texts(split(&resize).unwrap());
        assert_eq!((&*args, &*kwargs), ("[]", r#"{"image": "\u00e4", "width": 3, "crop": null}"#));
        assert_eq!(read::<Resize>(&args, &kwargs), Ok(resize));
        assert_eq!(texts(split(&(1, "b")).unwrap()), (r#"[1, "b"]"#.into(), "{}".into()));
        assert_eq!(read::<(i64, String)>(r#"[1, "b"]"#, "{}"), Ok((1, "b".into())));
        assert_eq!(texts(split(&()).unwrap()), ("[]".into(), "{}".into()));
        assert_eq!(read::<()>("[]", "{}"), Ok(()));
        assert_eq!(texts(split(&7).unwrap()), ("[7]".into(), "{}".into()));
        assert_eq!(read::<u8>("[7]", "{}"), Ok(7));
    }

    #[test]
    fn what_python_may_pass() {
        let crop = Some(Crop::Box(1, 2));
        let expected = Resize { image: "a".into(), width: 3, crop };
        assert_eq!(read::<Resize>(r#"["a", 3]"#, r#"{"crop": {"Box": [1, 2]}}"#), Ok(expected));
        let plain = Resize { image: "a".into(), width: 3, crop: Some(Crop::Square) };
        assert_eq!(read::<Resize>(r#"["a"]"#, r#"{"crop": "Square", "width": 3}"#), Ok(plain));
        assert!(read::<(f64, f64)>("[NaN, -Infinity]", "{}").unwrap().0.is_nan());
        assert_eq!(read::<Vec<i32>>("[1, 2, 3]", "{}"), Ok(vec![1, 2, 3]));
        assert_eq!(read::<Option<u8>>("[]", "{}"), Ok(None));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let check = |args: &str, kwargs: &str, part: &str| {
            let error = read::<Resize>(args, kwargs).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("[]", r#"{"image": "a"}"#, "`width` is missing");
        check("[]", r#"{"image": "a", "width": "b"}"#, "`width`: invalid type: string \"b\", expected u32");
        check("[]", r#"{"image": "a", "width": -1}"#, "`width`");
        check("[]", r#"{"image": NaN, "width": 1}"#, "`image`");
        check("[]", r#"{"image": "\ud800", "width": 1}"#, "`image`");
        check("[]", r#"{"image": "a", "width": 1, "height": 2}"#, "unexpected argument `height`");
        check("[\"a\"]", r#"{"image": "a", "width": 1}"#, "`image` is given twice");
        check("[1, 2, 3, 4]", "{}", "4 positional arguments are given and at most 3 taken");
        let tuple = |args: &str, kwargs: &str| read::<(u8, u8)>(args, kwargs).unwrap_err();
        assert!(tuple("[1, \"x\"]", "{}").contains("argument 2"));
        assert!(tuple("[1]", "{}").contains("length 1"));
        assert!(tuple("[1, 2, 3]", "{}").contains("3 positional arguments are given and 2 taken"));
        assert!(tuple("[1, 2]", "{\"a\": 1}").contains("`a`"));
        assert!(read::<()>("[1]", "{}").unwrap_err().contains("none taken"));
    }
}
