//! The types of events in the packages for Python and JavaScript.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tenterhook_engine::EventKind;
use tenterhook_terminal::reference::{EventPage, FieldRow, ObjectType};

use crate::pages::compare_file;

/// The words around the generated part of a file.
const BEGIN: &str = "generated: the types of events, from the crate `reference`\n";
const END: &str = "end of the generated types\n";

/// How one language writes types.
struct Language {
    /// The path of the file below the folder `sdk`.
    path: &'static str,
    comment: &'static str,
    string: &'static str,
    integer: &'static str,
    number: &'static str,
    boolean: &'static str,
    object: &'static str,
    any: &'static str,
    array: fn(&str) -> String,
    words: fn(&[&str]) -> String,
    named: fn(&str) -> String,
    write: fn(&Language, &[EventPage], &BTreeMap<String, ObjectType>) -> String,
}

const PYTHON: Language = Language {
    path: "python/tenterhook/__init__.pyi",
    comment: "# ",
    string: "str",
    integer: "int",
    number: "float",
    boolean: "bool",
    object: "dict[str, Any]",
    any: "Any",
    array: |item| format!("list[{item}]"),
    words: |words| format!("Literal[\"{}\"]", words.join("\", \"")),
    named: |name| format!("_{name}"),
    write: write_python,
};

const TYPESCRIPT: Language = Language {
    path: "javascript/tenterhook/index.d.ts",
    comment: "// ",
    string: "string",
    integer: "number",
    number: "number",
    boolean: "boolean",
    object: "Record<string, any>",
    any: "any",
    array: |item| {
        if item.contains('|') {
            format!("({item})[]")
        } else {
            format!("{item}[]")
        }
    },
    words: |words| format!("\"{}\"", words.join("\" | \"")),
    named: str::to_owned,
    write: write_typescript,
};

impl Language {
    /// Returns the type of a field's values.
    fn type_of(&self, field: &FieldRow) -> String {
        if let Some(item) = field.type_name.strip_prefix("array of ") {
            let singular = if field.object.is_some() {
                item
            } else {
                item.strip_suffix('s').unwrap_or(item)
            };
            return (self.array)(&self.value(singular, field));
        }
        self.value(&field.type_name, field)
    }

    fn value(&self, name: &str, field: &FieldRow) -> String {
        if let Some(object) = &field.object {
            return (self.named)(object);
        }
        if !field.words.is_empty() {
            let words: Vec<&str> = field.words.iter().map(|row| &*row.word).collect();
            return (self.words)(&words);
        }
        match name {
            "string" => self.string,
            "integer" => self.integer,
            "number" => self.number,
            "boolean" => self.boolean,
            "object" => self.object,
            "any JSON value" => self.any,
            // Not a type in either language, so that a type checker finds it.
            _ => name,
        }
        .to_owned()
    }
}

/// Returns whether handlers must expect that the field is missing. The arguments of a tool are missing only if there
/// are none, and a hook for one tool knows which arguments it has.
fn may_be_missing(field: &FieldRow) -> bool {
    !field.required && field.type_name != "object"
}

/// Returns the name of an event's type: `PreToolUseEvent` for `pre_tool_use`.
fn type_name(event: &str) -> String {
    let words = event.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    });
    words.collect::<String>() + "Event"
}

/// Returns the first sentence of a text.
fn sentence(text: &str) -> String {
    let first = text.split(". ").next().unwrap_or_default();
    first.trim_end_matches('.').to_owned() + "."
}

fn write_python(
    language: &Language,
    events: &[EventPage],
    objects: &BTreeMap<String, ObjectType>,
) -> String {
    let mut out = String::new();
    for object in objects.values() {
        write!(out, "\nclass _{}(TypedDict, total=False):\n", object.name).unwrap();
        for field in &object.fields {
            writeln!(out, "    {}: {}", field.name, language.type_of(field)).unwrap();
        }
    }
    for event in events {
        let (name, summary) = (type_name(event.name), sentence(event.summary()));
        write!(out, "\nclass {name}(Event):\n    \"\"\"{summary}\"\"\"\n").unwrap();
        // A keyword of Python can only be used as a key.
        let fields = event.fields.iter().filter(|field| field.name != "class");
        for (number, field) in fields.enumerate() {
            let shape = language.type_of(field);
            let shape = if may_be_missing(field) {
                format!("Optional[{shape}]")
            } else {
                shape
            };
            let space = if number == 0 { "\n" } else { "" };
            writeln!(out, "{space}    {}: {shape}", field.name).unwrap();
        }
    }
    for event in events {
        let (word, handler) = (event.name, format!("_Handler[{}]", type_name(event.name)));
        for (matcher, result) in [
            (
                "Optional[str] = ..., priority: int = ...",
                format!("Callable[[{handler}], {handler}]"),
            ),
            (&*handler, handler.clone()),
        ] {
            let event = format!("event: Literal[\"{word}\"], matcher: {matcher}");
            let signature = format!("def on(\n    {event}\n) -> {result}: ...");
            write!(out, "\n@overload\n{signature}\n").unwrap();
        }
    }
    out
}

fn write_typescript(
    language: &Language,
    events: &[EventPage],
    objects: &BTreeMap<String, ObjectType>,
) -> String {
    let mut out = String::new();
    let fields = |out: &mut String, fields: &[FieldRow]| {
        for field in fields {
            let mark = if may_be_missing(field) { "?" } else { "" };
            let shape = language.type_of(field);
            writeln!(
                out,
                "  /** {} */\n  {}{mark}: {shape};",
                sentence(&field.meaning),
                field.name
            )
            .unwrap();
        }
    };
    for object in objects.values() {
        write!(
            out,
            "\n/** {} */\nexport interface {} {{\n",
            sentence(&object.meaning),
            object.name
        )
        .unwrap();
        fields(&mut out, &object.fields);
        out.push_str("}\n");
    }
    for event in events {
        let name = type_name(event.name);
        let summary = sentence(event.summary());
        write!(
            out,
            "\n/** {summary} */\nexport interface {name} extends SharedFields {{\n"
        )
        .unwrap();
        fields(&mut out, &event.fields);
        if event.has_open_payload {
            out.push_str("  [key: string]: any;\n");
        }
        out.push_str("}\n");
    }
    out.push_str("\n/** The type of each event, by its name. */\nexport interface Events {\n");
    for event in events {
        writeln!(out, "  {}: {};", event.name, type_name(event.name)).unwrap();
    }
    out.push_str("}\n");
    out
}

/// Returns the events of the catalogue.
fn events() -> impl Iterator<Item = EventKind> {
    let all = EventKind::ALL.iter().copied();
    all.filter(|kind| *kind != EventKind::Custom)
}

/// The maximum length of a line.
const WIDTH: usize = 119;

/// Breaks long lines at their spaces. Further lines are indented by four more spaces.
fn broken(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let mut column = indent;
        write!(out, "{:indent$}", "").unwrap();
        for (number, word) in line.split_whitespace().enumerate() {
            if number > 0 && column + 1 + word.len() > WIDTH {
                write!(out, "\n{:1$}", "", indent + 4).unwrap();
                column = indent + 4;
            } else if number > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += word.len();
        }
        out.push('\n');
    }
    out
}

/// Returns the objects in the fields of all events, by their names.
fn objects(events: &[EventPage]) -> BTreeMap<String, ObjectType> {
    let mut objects: BTreeMap<String, ObjectType> = BTreeMap::new();
    for object in events.iter().flat_map(|event| &event.objects) {
        let known = objects
            .entry(object.name.clone())
            .or_insert_with(|| object.clone());
        assert_eq!(known, object, "two types have the same name");
    }
    objects
}

fn check(language: &Language) {
    let events: Vec<EventPage> = events().map(EventPage::of).collect();
    let part = broken(&(language.write)(language, &events, &objects(&events)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../sdk")
        .join(language.path);
    let written = fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        format!("{}{BEGIN}", language.comment),
        format!("{}{END}", language.comment),
    );
    let (before, rest) = written.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    compare_file(&path, &format!("{before}{begin}{part}\n{end}{after}"));
}

#[test]
fn the_types_for_python_are_those_of_the_catalogue() {
    check(&PYTHON);
}

#[test]
fn the_types_for_javascript_are_those_of_the_catalogue() {
    check(&TYPESCRIPT);
}

/// The names of the types that exist when a hook runs.
#[test]
fn each_type_of_an_event_can_be_imported_in_python() {
    let module = include_str!("../../../../../sdk/python/tenterhook/__init__.py");
    let (before, rest) = module
        .split_once("_EVENTS = frozenset(\n    \"\"\"\n")
        .unwrap();
    let (_, after) = rest.split_once("    \"\"\".split()").unwrap();
    let mut list = String::new();
    let mut line = "   ".to_owned();
    for kind in events() {
        let name = kind.info().name;
        if line.len() + 1 + name.len() > 119 {
            writeln!(list, "{line}").unwrap();
            "   ".clone_into(&mut line);
        }
        write!(line, " {name}").unwrap();
    }
    writeln!(list, "{line}").unwrap();
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdk/python/tenterhook/__init__.py");
    let expected =
        format!("{before}_EVENTS = frozenset(\n    \"\"\"\n{list}    \"\"\".split(){after}");
    compare_file(&path, &expected);
}
