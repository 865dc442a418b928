//! Renders a problem in the style of a compiler.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Problem, Severity};
use crate::source::Position;

/// How many bytes of a line are shown before a problem.
const BEFORE: usize = 1000;
/// How many bytes of a line are shown from the start of a problem.
const AFTER: usize = 1000;

impl Problem {
    /// Renders the problem with the line that it is on, in colour if `coloured` is set.
    pub fn render(&self, coloured: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let path = self.shown_path();
        let title = level.primary_title(self.message.as_str());
        let group = match self.position {
            Some(position) => {
                let (line, start, is_whole) = self.excerpt(position);
                let label = self
                    .suggestion
                    .as_ref()
                    .map(|suggestion| format!("did you mean `{suggestion}`?"));
                let length = position.span.end - position.span.start;
                let annotation = AnnotationKind::Primary
                    .span(start..line.floor_char_boundary(start + length))
                    .label(label);
                let snippet = Snippet::source(line)
                    .line_start(position.line)
                    .annotation(annotation);
                if is_whole {
                    title.element(snippet.path(path))
                } else {
                    // The renderer would count the column from the start of the excerpt, so pass the real
                    // column.
                    let origin = Origin::path(path).line(position.line);
                    title
                        .element(origin.char_column(position.column))
                        .element(snippet)
                }
            }
            None => title.element(Origin::path(path)),
        };
        render(self.with_footers(group), coloured)
    }

    /// Returns the part of the line around a position, the offset of the position in this part, and
    /// whether the part starts at the start of the line.
    fn excerpt(&self, position: Position) -> (&str, usize, bool) {
        let start = position.span.start.min(self.text.len());
        let (before, after) = self.text.split_at_checked(start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let from = before
            .ceil_char_boundary(start.saturating_sub(BEFORE))
            .max(line_start);
        let rest = after.lines().next().unwrap_or_default();
        let to = start + rest.floor_char_boundary(AFTER);
        let shown = self.text.get(from..to).unwrap_or_default();
        (shown, start - from, from == line_start)
    }

    fn with_footers<'a>(&'a self, group: Group<'a>) -> Group<'a> {
        let allowed = self
            .allowed
            .as_ref()
            .map(|allowed| Level::NOTE.message(format!("allowed: {allowed}")));
        let suggestion = self.suggestion.as_ref().filter(|_| self.position.is_none());
        let suggestion = suggestion.map(|it| Level::HELP.message(format!("did you mean `{it}`?")));
        let hint = self.hint.as_ref().map(|hint| Level::HELP.message(&**hint));
        group.elements(allowed).elements(suggestion).elements(hint)
    }
}

fn render(group: Group<'_>, coloured: bool) -> String {
    let renderer = if coloured {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let report = renderer.render(&[group]);
    let lines: Vec<&str> = report.lines().map(str::trim_end).collect();
    lines.join("\n")
}
