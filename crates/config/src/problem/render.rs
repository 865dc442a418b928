//! A problem as a compiler would show it.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Problem, Severity};
use crate::source::Place;

/// How many bytes of a line are shown before a problem.
const BEFORE: usize = 1000;
/// How many bytes of a line are shown from a problem on.
const AFTER: usize = 1000;

impl Problem {
    /// Renders the problem with the line it stands on, in colour if that is asked for.
    pub fn render(&self, coloured: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let path = self.shown_path();
        let title = level.primary_title(self.message.as_str());
        let group = match self.place {
            Some(place) => {
                let (line, start, is_whole) = self.excerpt(place);
                let label = self
                    .suggestion
                    .as_ref()
                    .map(|suggestion| format!("did you mean `{suggestion}`?"));
                let length = place.span.end - place.span.start;
                let annotation = AnnotationKind::Primary
                    .span(start..line.floor_char_boundary(start + length))
                    .label(label);
                let snippet = Snippet::source(line)
                    .line_start(place.line)
                    .annotation(annotation);
                if is_whole {
                    title.element(snippet.path(path))
                } else {
                    // The renderer counts the column in what it shows.
                    let origin = Origin::path(path).line(place.line);
                    title
                        .element(origin.char_column(place.column))
                        .element(snippet)
                }
            }
            None => title.element(Origin::path(path)),
        };
        render(self.with_footers(group), coloured)
    }

    /// Returns the part of the line around a place, where in it the place starts, and whether it has the
    /// start of the line.
    fn excerpt(&self, place: Place) -> (&str, usize, bool) {
        let start = place.span.start.min(self.text.len());
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
        let suggestion = self.suggestion.as_ref().filter(|_| self.place.is_none());
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
