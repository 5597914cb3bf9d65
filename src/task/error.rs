//! The errors of a task's attempts.

use crate::task::RawJson;

/// One error as the record stores it: a Python class path and a traceback.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRecord {
    /// The importable path of the exception's class, such as `builtins.ValueError`.
    pub class_path: String,
    /// The traceback for a person; a lone surrogate in it reads as U+FFFD.
    pub traceback: String,
    /// The stored object, carried byte for byte.
    pub raw: RawJson,
}

/// The class of the error that a lost lease leaves.
pub const LEASE_LOST_CLASS: &str = "threadmill.exceptions.AcknowledgementTimeoutError";

/// The same error's name in older releases of the Python package; stored retries may name it.
const LEASE_LOST_CLASS_OLD: &str = "threadmill.exceptions.AcknowledgementTimeout";

/// The message of the error that a lost lease leaves.
pub const LEASE_LOST_TEXT: &str = "Task processing lease expired.";

/// The module of Python's own exceptions.
pub const BUILTIN_PREFIX: &str = "builtins.";

impl ErrorRecord {
    /// The last line of the traceback, which in Python names the class and the message.
    pub fn summary(&self) -> &str {
        self.traceback.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").trim()
    }

    /// The class without its module.
    pub fn class_name(&self) -> &str {
        self.class_path.rsplit('.').next().unwrap_or(&self.class_path)
    }
}

/// Python's exceptions and the class that each derives from, as documented in the "Exception hierarchy" of the
/// Python 3.14 library reference. Both names of an alias are listed.
const HIERARCHY: &[(&str, &str)] = &[
    ("Exception", "BaseException"),
    ("GeneratorExit", "BaseException"),
    ("KeyboardInterrupt", "BaseException"),
    ("SystemExit", "BaseException"),
    ("BaseExceptionGroup", "BaseException"),
    ("ArithmeticError", "Exception"),
    ("FloatingPointError", "ArithmeticError"),
    ("OverflowError", "ArithmeticError"),
    ("ZeroDivisionError", "ArithmeticError"),
    ("AssertionError", "Exception"),
    ("AttributeError", "Exception"),
    ("BufferError", "Exception"),
    ("EOFError", "Exception"),
    ("ImportError", "Exception"),
    ("ModuleNotFoundError", "ImportError"),
    ("LookupError", "Exception"),
    ("IndexError", "LookupError"),
    ("KeyError", "LookupError"),
    ("MemoryError", "Exception"),
    ("NameError", "Exception"),
    ("UnboundLocalError", "NameError"),
    ("OSError", "Exception"),
    ("IOError", "Exception"),
    ("EnvironmentError", "Exception"),
    ("BlockingIOError", "OSError"),
    ("ChildProcessError", "OSError"),
    ("ConnectionError", "OSError"),
    ("BrokenPipeError", "ConnectionError"),
    ("ConnectionAbortedError", "ConnectionError"),
    ("ConnectionRefusedError", "ConnectionError"),
    ("ConnectionResetError", "ConnectionError"),
    ("FileExistsError", "OSError"),
    ("FileNotFoundError", "OSError"),
    ("InterruptedError", "OSError"),
    ("IsADirectoryError", "OSError"),
    ("NotADirectoryError", "OSError"),
    ("PermissionError", "OSError"),
    ("ProcessLookupError", "OSError"),
    ("TimeoutError", "OSError"),
    ("ReferenceError", "Exception"),
    ("RuntimeError", "Exception"),
    ("NotImplementedError", "RuntimeError"),
    ("PythonFinalizationError", "RuntimeError"),
    ("RecursionError", "RuntimeError"),
    ("StopAsyncIteration", "Exception"),
    ("StopIteration", "Exception"),
    ("SyntaxError", "Exception"),
    ("IndentationError", "SyntaxError"),
    ("TabError", "IndentationError"),
    ("SystemError", "Exception"),
    ("TypeError", "Exception"),
    ("ValueError", "Exception"),
    ("UnicodeError", "ValueError"),
    ("UnicodeDecodeError", "UnicodeError"),
    ("UnicodeEncodeError", "UnicodeError"),
    ("UnicodeTranslateError", "UnicodeError"),
    ("ExceptionGroup", "Exception"),
    ("Warning", "Exception"),
    ("BytesWarning", "Warning"),
    ("DeprecationWarning", "Warning"),
    ("EncodingWarning", "Warning"),
    ("FutureWarning", "Warning"),
    ("ImportWarning", "Warning"),
    ("PendingDeprecationWarning", "Warning"),
    ("ResourceWarning", "Warning"),
    ("RuntimeWarning", "Warning"),
    ("SyntaxWarning", "Warning"),
    ("UnicodeWarning", "Warning"),
    ("UserWarning", "Warning"),
];

/// Whether `class` is `base` or derives from it: `None` where only Python could tell.
///
/// Python's own exceptions and the lease error are known here. Another class is known to be itself, and to be no
/// ancestor of Python's own ones; whether it derives from a given base is not known.
pub fn is_subclass(class: &str, base: &str) -> Option<bool> {
    let (class, base) = (canonical(class), canonical(base));
    if class == base {
        return Some(true);
    }
    let mut current = if class == LEASE_LOST_CLASS {
        "Exception"
    } else {
        class.strip_prefix(BUILTIN_PREFIX).filter(|name| is_builtin(name))?
    };
    let Some(base) = base.strip_prefix(BUILTIN_PREFIX) else { return Some(false) };
    loop {
        if current == base {
            return Some(true);
        }
        match HIERARCHY.iter().find(|(name, _)| *name == current) {
            Some((_, parent)) => current = parent,
            None => return Some(false),
        }
    }
}

fn is_builtin(name: &str) -> bool {
    name == "BaseException" || HIERARCHY.iter().any(|(known, _)| *known == name)
}

/// One name for a class that is known by two.
fn canonical(class: &str) -> &str {
    match class {
        LEASE_LOST_CLASS_OLD => LEASE_LOST_CLASS,
        "builtins.IOError" | "builtins.EnvironmentError" => "builtins.OSError",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subclass_questions() {
        let check = |class: &str, base: &str, expected: Option<bool>| {
            assert_eq!(is_subclass(class, base), expected, "{class} of {base}");
        };
        check("builtins.ValueError", "builtins.ValueError", Some(true));
        check("builtins.UnicodeDecodeError", "builtins.ValueError", Some(true));
        check("builtins.ValueError", "builtins.Exception", Some(true));
        check("builtins.ValueError", "builtins.KeyError", Some(false));
        check("builtins.SystemExit", "builtins.Exception", Some(false));
        check("builtins.ValueError", "shop.errors.Mine", Some(false));
        check("shop.errors.Mine", "shop.errors.Mine", Some(true));
        check("shop.errors.Mine", "builtins.Exception", None);
        check("builtins.ConnectionError", "builtins.IOError", Some(true));
        check(LEASE_LOST_CLASS, "threadmill.exceptions.AcknowledgementTimeout", Some(true));
        check(LEASE_LOST_CLASS, "builtins.Exception", Some(true));
        check(LEASE_LOST_CLASS, "builtins.TimeoutError", Some(false));
    }
}
