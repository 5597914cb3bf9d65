//! Answers of the server, taken apart with a clear error where they are not what was promised.

use crate::backend::BackendError;
use redis::Value;

/// A value that the server answered to `what`.
#[derive(Debug)]
pub(crate) struct Answer {
    what: &'static str,
    value: Value,
}

impl Answer {
    pub fn new(what: &'static str, value: Value) -> Self {
        Self { what, value }
    }

    fn unexpected(&self) -> BackendError {
        BackendError::Unexpected { what: self.what }
    }

    /// Its elements.
    pub fn list(self) -> Result<Vec<Answer>, BackendError> {
        let what = self.what;
        match self.value {
            Value::Array(values) | Value::Set(values) => {
                Ok(values.into_iter().map(|value| Answer { what, value }).collect())
            }
            Value::Map(pairs) => {
                Ok(pairs.into_iter().flat_map(|(k, v)| [k, v]).map(|value| Answer { what, value }).collect())
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Exactly `N` elements.
    pub fn array<const N: usize>(self) -> Result<[Answer; N], BackendError> {
        let error = self.unexpected();
        self.list()?.try_into().map_err(|_| error)
    }

    /// Its elements, `N` at a time.
    pub fn groups<const N: usize>(self) -> Result<Vec<[Answer; N]>, BackendError> {
        let what = self.what;
        let mut values = self.list()?.into_iter();
        let mut groups = Vec::with_capacity(values.len() / N);
        while values.len() > 0 {
            let group: Vec<Answer> = values.by_ref().take(N).collect();
            groups.push(group.try_into().map_err(|_| BackendError::Unexpected { what })?);
        }
        Ok(groups)
    }

    /// Text, or bytes.
    pub fn bytes(self) -> Result<Vec<u8>, BackendError> {
        match self.value {
            Value::BulkString(bytes) => Ok(bytes),
            Value::SimpleString(text) => Ok(text.into_bytes()),
            Value::Okay => Ok(b"OK".to_vec()),
            Value::Int(number) => Ok(number.to_string().into_bytes()),
            Value::Double(number) => Ok(number.to_string().into_bytes()),
            _ => Err(self.unexpected()),
        }
    }

    /// Text; invalid UTF-8 is replaced.
    pub fn text(self) -> Result<String, BackendError> {
        let bytes = self.bytes()?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// A whole number.
    pub fn integer(self) -> Result<i64, BackendError> {
        let error = self.unexpected();
        match self.value {
            Value::Int(number) => Ok(number),
            Value::BulkString(_) | Value::SimpleString(_) => self.text()?.parse().map_err(|_| error),
            _ => Err(error),
        }
    }

    /// A whole number from 0 up.
    pub fn count(self) -> Result<u64, BackendError> {
        let error = self.unexpected();
        u64::try_from(self.integer()?).map_err(|_| error)
    }

    /// A double.
    pub fn number(self) -> Result<f64, BackendError> {
        let error = self.unexpected();
        match self.value {
            Value::Double(number) => Ok(number),
            Value::Int(number) => Ok(number as f64),
            Value::BulkString(_) | Value::SimpleString(_) => self.text()?.parse().map_err(|_| error),
            _ => Err(error),
        }
    }

    /// `None` for nil.
    pub fn optional(self) -> Option<Answer> {
        match self.value {
            Value::Nil => None,
            _ => Some(self),
        }
    }

    /// A text in which '' stands for nothing.
    pub fn text_or_none(self) -> Result<Option<String>, BackendError> {
        match self.optional() {
            None => Ok(None),
            Some(answer) => Ok(Some(answer.text()?).filter(|text| !text.is_empty())),
        }
    }

    /// One of a closed set of codes.
    pub fn code<T: Copy>(self, codes: &[(&str, T)]) -> Result<T, BackendError> {
        let error = self.unexpected();
        let text = self.text()?;
        codes.iter().find(|(name, _)| *name == text).map(|(_, code)| *code).ok_or(error)
    }
}
