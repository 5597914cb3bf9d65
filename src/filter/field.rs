//! What a filter can ask of a task, once. Parsing, completion and the page in `docs` all read [`FIELDS`].

/// Something that a filter asks of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The id.
    Id,
    /// The function.
    Func,
    /// The class of the last error.
    Error,
    /// The message of the last error.
    Message,
    /// The traceback of the last error.
    Traceback,
    /// The incident that the last error belongs to.
    Incident,
    /// A worker that holds it or tried it.
    Worker,
    /// The queue.
    Queue,
    /// The segment.
    Segment,
    /// Attempts made, a running one included.
    Attempt,
    /// The priority.
    Priority,
    /// How long it has been in its segment.
    Age,
    /// When it was enqueued.
    Enqueued,
    /// When its last attempt began.
    Started,
    /// When it finished.
    Finished,
    /// When it is due.
    Due,
    /// How long its last attempt took.
    Took,
    /// Bytes of its record.
    Size,
    /// Arguments.
    Args,
    /// Keyword arguments.
    Kwargs,
    /// The return value.
    Result,
}

/// What can be said of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A dotted name: whole, some of its parts, or with `*` and `?`.
    Name,
    /// Words within a longer text.
    Text,
    /// One word: whole, or with `*` and `?`.
    Word,
    /// A number, compared.
    Number,
    /// A duration, compared.
    Span,
    /// A moment, or how far it is from now; compared.
    Time,
    /// Bytes, compared.
    Size,
    /// A segment.
    Segment,
    /// User data: words within it, or the value at a path.
    Data,
}

/// A field as it is written and explained.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// The field.
    pub field: Field,
    /// Its name.
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// What can be said of it.
    pub kind: Kind,
    /// What it is, in a few words.
    pub help: &'static str,
    /// An example.
    pub example: &'static str,
}

const fn info(
    field: Field,
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    help: &'static str,
    example: &'static str,
) -> FieldInfo {
    FieldInfo { field, name, aliases, kind, help, example }
}

/// Every field, those that are asked for most first.
pub const FIELDS: &[FieldInfo] = &[
    info(
        Field::Error,
        "error",
        &["class", "exception"],
        Kind::Name,
        "class of the last error",
        "error:ConnectionError",
    ),
    info(Field::Func, "func", &["function"], Kind::Name, "the function, by its dotted name", "func:shop.*"),
    info(Field::Age, "age", &[], Kind::Span, "how long it has been in its segment", "age<2h30m"),
    info(Field::Message, "message", &["msg"], Kind::Text, "message of the last error", "message:\"timed out\""),
    info(Field::Args, "args", &[], Kind::Data, "arguments, by position or name", "args.user_id:42"),
    info(Field::Attempt, "attempt", &["attempts"], Kind::Number, "attempts made, a running one included", "attempt>=3"),
    info(Field::Worker, "worker", &[], Kind::Word, "a worker that holds it or tried it", "worker:web1"),
    info(Field::Priority, "priority", &["prio"], Kind::Number, "the priority", "priority>0"),
    info(
        Field::Incident,
        "incident",
        &["fingerprint"],
        Kind::Word,
        "failures that belong together",
        "incident:1f3c09ab",
    ),
    info(Field::Kwargs, "kwargs", &[], Kind::Data, "keyword arguments only", "kwargs.locale:de"),
    info(Field::Result, "result", &[], Kind::Data, "the return value", "result.sent:true"),
    info(Field::Traceback, "traceback", &["trace"], Kind::Text, "traceback of the last error", "traceback:mail.py"),
    info(Field::Enqueued, "enqueued", &[], Kind::Time, "since it was enqueued, or when", "enqueued>1d"),
    info(Field::Started, "started", &[], Kind::Time, "since its last attempt began, or when", "started<10m"),
    info(Field::Finished, "finished", &[], Kind::Time, "since it finished, or when", "finished>2026-11-30T18:00:00Z"),
    info(Field::Due, "due", &[], Kind::Time, "until a SCHEDULED task runs, or when", "due<10m"),
    info(Field::Took, "took", &[], Kind::Span, "how long its last attempt took", "took>30s"),
    info(Field::Size, "size", &[], Kind::Size, "bytes of its record", "size>100kb"),
    info(Field::Id, "id", &[], Kind::Text, "the id, or a part of it", "id:d320e7d4"),
    info(Field::Queue, "queue", &[], Kind::Word, "the queue", "queue:emails"),
    info(Field::Segment, "segment", &["state", "status"], Kind::Segment, "the segment", "segment:failed"),
];

impl Field {
    /// The field of this name.
    pub fn named(name: &str) -> Option<&'static FieldInfo> {
        let lower = name.to_ascii_lowercase();
        FIELDS.iter().find(|info| info.name == lower || info.aliases.contains(&lower.as_str()))
    }

    /// What is known of this field.
    pub fn info(self) -> &'static FieldInfo {
        // A test sees to it that each field is in the table.
        FIELDS.iter().find(|info| info.field == self).unwrap_or(&FIELDS[0])
    }
}

/// The name that is most likely meant, where one is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let names = FIELDS.iter().flat_map(|info| std::iter::once(info.name).chain(info.aliases.iter().copied()));
    names
        .map(|known| (strsim::damerau_levenshtein(&lower, known), known))
        .filter(|(apart, known)| *apart <= 1 + known.len() / 4)
        .min_by_key(|(apart, _)| *apart)
        .map(|(_, known)| known)
}
