//! The part of the screen on which a script draws: the rows below the output, or the whole screen.
//!
//! The sequences only move within the drawn rows, so the output above them stays as it is. The screen does not wrap
//! lines meanwhile. So a character whose width the terminal sees differently cannot shift the rows.

use std::fmt::Write as _;

use tenterhook_agent::frontend::{DrawingFrame, ScreenSize};

use crate::output::drawn_line::{drawn_line, drawn_width};

/// Hides the cursor, stops wrapping lines, and marks pasted text.
const BEGIN: &str = "\u{1b}[?25l\u{1b}[?7l\u{1b}[?2004h";
/// Undoes [`BEGIN`].
const END: &str = "\u{1b}[?2004l\u{1b}[?7h\u{1b}[?25h";
const WRAP: &str = "\u{1b}[?7h";
const NO_WRAP: &str = "\u{1b}[?7l";
/// Switch to a second screen, which leaves the output as it is, and back.
const OPEN_SCREEN: &str = "\u{1b}[?1049h\u{1b}[H\u{1b}[2J";
const CLEAR_SCREEN: &str = "\u{1b}[H\u{1b}[2J";
const CLOSE_SCREEN: &str = "\u{1b}[?1049l";
/// The terminal shows everything between these two at once.
const BEGIN_FRAME: &str = "\u{1b}[?2026h";
const END_FRAME: &str = "\u{1b}[?2026l";
const CLEAR_ROW: &str = "\u{1b}[2K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// What a script has drawn. Every function returns the text to write to the terminal.
#[derive(Debug)]
pub struct Canvas {
    size: ScreenSize,
    is_coloured: bool,
    /// The drawn rows, without the ends of the lines. The cursor is at the end of the last one.
    rows: Vec<String>,
    /// Whether the second screen is open.
    is_screen: bool,
}

impl Canvas {
    /// Creates an empty canvas at the cursor, which must be at the beginning of a row.
    pub fn new(size: ScreenSize, is_coloured: bool) -> Self {
        Self {
            size,
            is_coloured,
            rows: Vec::new(),
            is_screen: false,
        }
    }

    /// Returns whether the drawing fills the screen, so that no output can be shown above it.
    pub fn is_screen(&self) -> bool {
        self.is_screen
    }

    /// Prepares the terminal.
    pub fn begin() -> &'static str {
        BEGIN
    }

    /// Removes the drawing and restores the terminal.
    pub fn end(&mut self) -> String {
        let mut text = self.clear();
        if std::mem::take(&mut self.is_screen) {
            text.push_str(CLOSE_SCREEN);
        }
        text.push_str(END);
        text
    }

    /// Draws a frame. Only rows that differ are written.
    pub fn draw(&mut self, frame: &DrawingFrame) -> String {
        let mut text = BEGIN_FRAME.to_owned();
        if frame.is_screen != self.is_screen {
            text.push_str(&self.clear());
            text.push_str(if frame.is_screen {
                OPEN_SCREEN
            } else {
                CLOSE_SCREEN
            });
            self.is_screen = frame.is_screen;
        }
        let columns = usize::from(self.size.columns);
        let lines = frame.lines.iter().take(usize::from(self.size.rows));
        let rows: Vec<String> = lines
            .map(|line| drawn_line(line, columns, self.is_coloured))
            .collect();
        text.push_str(&self.to_first_row());
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            if self.rows.get(at) != Some(row) {
                text.push_str(CLEAR_ROW);
                text.push_str(row);
            }
        }
        if rows.is_empty() {
            text.push_str(CLEAR_BELOW);
        } else if rows.len() < self.rows.len() {
            // The cursor may be on the last character of a row, which must stay.
            text.push_str("\r\n");
            text.push_str(CLEAR_BELOW);
            text.push_str("\u{1b}[A");
        }
        self.rows = rows;
        text.push_str(END_FRAME);
        text
    }

    /// Prints lines of output above the drawing.
    pub fn print_above(&mut self, lines: &[String]) -> String {
        let rows = std::mem::take(&mut self.rows);
        let mut text = to_row_above(rows.len().saturating_sub(1)) + CLEAR_BELOW + WRAP;
        for line in lines {
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str(NO_WRAP);
        text.push_str(&rows.join("\r\n"));
        self.rows = rows;
        text
    }

    /// Removes the drawing until the next frame. The cursor is then where the drawing began.
    pub fn clear(&mut self) -> String {
        let text = self.to_first_row() + CLEAR_BELOW;
        self.rows.clear();
        text
    }

    /// Applies a new size of the screen. A narrower terminal has wrapped the rows that no longer fit.
    pub fn resize(&mut self, size: ScreenSize) -> String {
        let columns = usize::from(size.columns).max(1);
        let rows_of = |row: &String| drawn_width(row).div_ceil(columns).max(1);
        let above: usize = self.rows.iter().map(rows_of).sum();
        let above = above
            .saturating_sub(1)
            .min(usize::from(size.rows).saturating_sub(1));
        self.size = size;
        self.rows.clear();
        if self.is_screen {
            CLEAR_SCREEN.to_owned()
        } else {
            to_row_above(above) + CLEAR_BELOW
        }
    }

    /// Moves the cursor to the beginning of the first row.
    fn to_first_row(&self) -> String {
        to_row_above(self.rows.len().saturating_sub(1))
    }
}

fn to_row_above(count: usize) -> String {
    let mut text = "\r".to_owned();
    if count > 0 {
        // Writing to a string does not fail.
        let _written = write!(text, "\u{1b}[{count}A");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: ScreenSize = ScreenSize {
        columns: 20,
        rows: 6,
    };

    struct Screen(vt100::Parser);

    impl Screen {
        fn new() -> Self {
            let mut parser = vt100::Parser::new(SIZE.rows, SIZE.columns, 0);
            parser.process(b"one\r\ntwo\r\n");
            parser.process(Canvas::begin().as_bytes());
            Self(parser)
        }

        fn show(&mut self, text: &str) -> Vec<String> {
            self.0.process(text.as_bytes());
            let rows = self.0.screen().contents();
            rows.trim_end().lines().map(str::to_owned).collect()
        }
    }

    fn frame(lines: &[&str]) -> DrawingFrame {
        DrawingFrame {
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
            is_screen: false,
        }
    }

    #[test]
    fn frames_replace_one_another_below_the_output() {
        let mut screen = Screen::new();
        let mut canvas = Canvas::new(SIZE, true);
        for (lines, expected) in [
            (vec!["a", "b", "c"], vec!["one", "two", "a", "b", "c"]),
            (vec!["a", "x", "c"], vec!["one", "two", "a", "x", "c"]),
            (vec!["a"], vec!["one", "two", "a"]),
            (vec!["b"], vec!["one", "two", "b"]),
            (vec!["b", "日本語"], vec!["one", "two", "b", "日本語"]),
            (vec![], vec!["one", "two"]),
            (vec!["", "z"], vec!["one", "two", "", "z"]),
            (
                vec!["a", "z", "1", "2", "3"],
                vec!["two", "a", "z", "1", "2", "3"],
            ),
        ] {
            assert_eq!(screen.show(&canvas.draw(&frame(&lines))), expected);
        }
        assert_eq!(screen.show(&canvas.end()), ["two"]);
        assert!(!screen.0.screen().hide_cursor());
        assert_eq!(screen.show("three"), ["two", "three"]);
    }

    #[test]
    fn output_is_printed_above_the_drawing() {
        let mut screen = Screen::new();
        let mut canvas = Canvas::new(SIZE, true);
        screen.show(&canvas.draw(&frame(&["a", "b"])));
        let line = "a line that is wider than the screen".to_owned();
        let expected = ["one", "two", line.as_str(), "a", "b"];
        assert_eq!(
            screen.show(&canvas.print_above(std::slice::from_ref(&line))),
            expected
        );
        let shown = screen.show(&canvas.draw(&frame(&["a", "c"])));
        assert_eq!(shown[3..], ["a", "c"]);
    }

    #[test]
    fn a_frame_is_cut_to_the_screen() {
        let mut screen = Screen::new();
        let mut canvas = Canvas::new(SIZE, true);
        let long = "日".repeat(40);
        let lines = [long.as_str(), "2", "3", "4", "5", "6", "7", "8"];
        let shown = screen.show(&canvas.draw(&frame(&lines)));
        let first = "日".repeat(10);
        assert_eq!(shown, [first.as_str(), "2", "3", "4", "5", "6"]);
        assert_eq!(screen.show(&canvas.draw(&frame(&["end"]))), ["end"]);
    }

    #[test]
    fn a_frame_that_fills_the_screen_leaves_the_output_as_it_is() {
        let mut screen = Screen::new();
        let mut canvas = Canvas::new(SIZE, true);
        screen.show(&canvas.draw(&frame(&["below"])));
        let filling = DrawingFrame {
            is_screen: true,
            ..frame(&["1", "2", "3", "4", "5", "6"])
        };
        let shown = screen.show(&canvas.draw(&filling));
        assert_eq!(shown, ["1", "2", "3", "4", "5", "6"]);
        assert!(canvas.is_screen());
        let shown = screen.show(&canvas.draw(&frame(&["below"])));
        assert_eq!(shown, ["one", "two", "below"]);
        screen.show(&canvas.draw(&filling));
        assert_eq!(screen.show(&canvas.end()), ["one", "two"]);
    }

    #[test]
    fn a_drawing_continues_on_a_screen_with_another_size() {
        let mut screen = Screen::new();
        let mut canvas = Canvas::new(SIZE, true);
        screen.show(&canvas.draw(&frame(&["wide and wider", "b"])));
        let wider = ScreenSize {
            columns: 30,
            rows: 10,
        };
        screen.0.screen_mut().set_size(wider.rows, wider.columns);
        screen.show(&canvas.resize(wider));
        let shown = screen.show(&canvas.draw(&frame(&["new", "frame"])));
        assert_eq!(shown, ["one", "two", "new", "frame"]);
    }
}
