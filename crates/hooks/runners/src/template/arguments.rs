//! Templates over named arguments, in Go's syntax, for the prompts of recipes.

use std::collections::BTreeMap;
use std::fmt;

use minijinja::value::Rest;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};

use super::error::{TemplateError, UnlocatedError, place};
use super::functions;
use super::go;
use super::scope::{MissingKey, ROOT, Values};
use super::{Bounded, FUEL, NAME, RenderError, SOURCE_LIMIT, detail};

/// A template over named arguments, such as `Hello {{ .name }}`.
///
/// In addition to [`FUNCTIONS`](super::FUNCTIONS), it can call `default VALUE TEXT` and `bash COMMAND ARGUMENT …`, and
/// it can use `{{ define "name" }}` and `{{ template "name" . }}`. An argument without a value prints `<no value>`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::collections::BTreeMap;
/// use tenterhook_runners::template::ArgumentTemplate;
///
/// let template = ArgumentTemplate::parse("Hello {{.name}}, {{default .mood \"well\"}}?")?;
/// let arguments = BTreeMap::from([("name".to_owned(), "Ada".to_owned())]);
/// let text = template.render(&arguments, 1 << 10, |_| String::new())?;
/// assert_eq!(text, "Hello Ada, well?");
/// # Ok(())
/// # }
/// ```
pub struct ArgumentTemplate {
    source: String,
    translated: String,
    /// The byte offset in the source for each tag of the translation.
    origins: Vec<usize>,
    runs_commands: bool,
}

impl fmt::Debug for ArgumentTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArgumentTemplate")
            .field(&self.source)
            .finish()
    }
}

impl ArgumentTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// Fails if the template is longer than [`SOURCE_LIMIT`], or is not valid in the supported subset of Go's syntax.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let placed = |error: UnlocatedError| error.placed(source);
        if source.len() > SOURCE_LIMIT {
            let error = UnlocatedError::new(0, "the template is too long");
            return Err(placed(error.allowed("at most 64 KiB")));
        }
        let translated = go::translate(source, Values::Arguments).map_err(placed)?;
        let template = Self {
            source: source.to_owned(),
            translated: translated.source,
            origins: translated.origins,
            runs_commands: translated.runs_commands,
        };
        let parsed = template.environment(|_| String::new());
        parsed.map_err(|error| placed(UnlocatedError::new(0, detail(&error))))?;
        Ok(template)
    }

    /// Returns the template as it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns whether the template runs commands.
    pub fn runs_commands(&self) -> bool {
        self.runs_commands
    }

    /// Fills in the arguments. `limit` is the longest text, in bytes. `run` gets the command and the arguments of each
    /// `bash`, and returns the output.
    ///
    /// # Errors
    /// Fails if a function gets an argument of the wrong kind, if the text is longer than the limit, or if it takes
    /// too many instructions.
    pub fn render(
        &self,
        arguments: &BTreeMap<String, String>,
        limit: usize,
        run: impl Fn(&[String]) -> String + Send + Sync + 'static,
    ) -> Result<String, RenderError> {
        let failed = |message: String| RenderError { message };
        let environment = self
            .environment(run)
            .map_err(|error| failed(detail(&error)))?;
        let template = environment
            .get_template(NAME)
            .map_err(|error| failed(detail(&error)))?;
        let pairs = arguments
            .iter()
            .map(|(name, text)| (name.clone(), text.clone()));
        let context = Value::from_pairs([(ROOT, Value::from_pairs(pairs))]);
        let mut text = Bounded::new(limit);
        let result = template.render_captured_to(context, &mut text).map(drop);
        if text.is_over {
            return Err(failed(format!(
                "the text is longer than {} KiB",
                limit >> 10
            )));
        }
        result.map_err(|error| failed(self.explain(&error)))?;
        String::from_utf8(text.bytes).map_err(|error| failed(error.to_string()))
    }

    fn environment(
        &self,
        run: impl Fn(&[String]) -> String + Send + Sync + 'static,
    ) -> Result<Environment<'static>, minijinja::Error> {
        let mut environment = Environment::empty();
        environment.set_debug(true);
        environment.set_fuel(Some(FUEL));
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        functions::add(&mut environment, MissingKey::Printed);
        functions::add_for_arguments(&mut environment);
        environment.add_function("_bash", move |words: Rest<String>| run(&words));
        environment.add_template_owned(NAME, self.translated.clone())?;
        Ok(environment)
    }

    fn explain(&self, error: &minijinja::Error) -> String {
        if error.kind() == ErrorKind::OutOfFuel {
            return "the template takes too much work".to_owned();
        }
        let tag = error.line().map(|line| line.saturating_sub(1) / 2);
        let offset = tag.and_then(|tag| self.origins.get(tag));
        let message = detail(error);
        match offset {
            Some(offset) => format!("line {}: {message}", place(&self.source, *offset).0),
            None => message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, arguments: &[(&str, &str)]) -> Result<String, String> {
        let template = ArgumentTemplate::parse(source).map_err(|error| error.to_string())?;
        let arguments = arguments
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        template
            .render(&arguments.collect(), 1 << 10, |words| {
                format!("<{}>", words.join("|"))
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_defaults_conditions_and_commands_are_filled_in() {
        for (source, arguments, expected) in [
            ("Hello {{.name}}!", &[("name", "Ada")][..], "Hello Ada!"),
            ("{{.name}}", &[], "<no value>"),
            ("{{default .branch \"main\"}}", &[], "main"),
            ("{{default .branch \"main\"}}", &[("branch", "")], "main"),
            ("{{default .branch \"main\"}}", &[("branch", "x")], "x"),
            ("{{/* note */}}a", &[], "a"),
            ("{{if .b}}yes{{else}}no{{end}}", &[], "no"),
            (
                "{{if eq .d \"true\"}}draft{{end}}",
                &[("d", "true")],
                "draft",
            ),
            ("{{if eq .d \"true\"}}draft{{end}}.", &[], "."),
            (
                "{{if ne (default .n \"false\") \"false\"}}on{{end}}.",
                &[],
                ".",
            ),
            (
                "{{if eq .t \"a\"}}A{{else if eq .t \"b\"}}B{{end}}",
                &[("t", "b")],
                "B",
            ),
            (
                "{{bash \"git\" \"diff\" .to}}",
                &[("to", "main")],
                "<git|diff|main>",
            ),
            (
                "{{.a}}",
                &[("a", "{{.b}} {{bash \"x\"}}")],
                "{{.b}} {{bash \"x\"}}",
            ),
            (
                "{{template \"who\" .}}{{define \"who\"}}I am {{if .name}}{{.name}}{{end}}{{end}}.",
                &[("name", "Ada")],
                "I am Ada.",
            ),
        ] {
            assert_eq!(
                render(source, arguments).as_deref(),
                Ok(expected),
                "{source}"
            );
        }
    }

    #[test]
    fn a_template_shows_whether_it_runs_commands() {
        for (source, expected) in [
            ("{{.bash}} bash", false),
            ("{{if .x}}{{bash \"x\"}}{{end}}", true),
            ("{{default (bash \"x\") \"y\"}}", true),
            ("{{\"x\" | bash}}", true),
            (
                "{{define \"a\"}}{{bash \"x\"}}{{end}}{{template \"a\" .}}",
                true,
            ),
        ] {
            let template = ArgumentTemplate::parse(source).unwrap();
            assert_eq!(template.runs_commands(), expected, "{source}");
        }
    }

    #[test]
    fn mistakes_have_a_line() {
        for (source, message) in [
            (
                "a\n{{ nmae }}",
                "the function `nmae` is not supported (line 2",
            ),
            ("{{.a", "(line 1"),
            ("{{if .a}}", "`{{ if }}` has no `{{ end }}`"),
            ("{{bash \"find\" | \"wc\"}}", "a value is not a function"),
            ("{{template \"x\" .}}", "there is no definition `x`"),
            ("{{template \"x\"}}", "`template` needs a name"),
            (
                "{{define \"x\"}}{{template \"x\" .}}{{end}}{{template \"x\" .}}",
                "nested too deeply",
            ),
            ("{{define \"x\"}}", "`{{ define }}` has no `{{ end }}`"),
            (
                "{{define \"x\"}}{{else}}{{end}}{{if .a}}{{template \"x\" .}}{{end}}",
                "`{{ else }}` is outside of any block",
            ),
            (
                "{{define \"x\"}}{{if .a}}{{end}}",
                "`{{ define }}` has no `{{ end }}`",
            ),
        ] {
            let error = render(source, &[]).unwrap_err();
            assert!(error.contains(message), "{source}: {error}");
        }
        let error = render("a\n{{ lt .a 5 }}", &[("a", "x")]).unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}
