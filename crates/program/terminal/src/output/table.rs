//! Plain tables: columns as wide as their widest cell.

use anstyle::Style;

use crate::output::styled;

/// A cell: its text and how it looks.
pub type Cell = (String, Style);

/// Returns the lines of a table, without trailing spaces and empty columns.
pub fn lines(rows: &[Vec<Cell>]) -> Vec<String> {
    let widths = widths(rows);
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// Returns the length of a line in which no cell is empty.
pub fn width(rows: &[Vec<Cell>]) -> usize {
    let widths = widths(rows);
    let filled: Vec<usize> = widths.into_iter().filter(|width| *width > 0).collect();
    filled.iter().sum::<usize>() + 2 * filled.len().saturating_sub(1)
}

fn widths(rows: &[Vec<Cell>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|(text, _)| text.chars().count())
            .max()
            .unwrap_or_default()
    };
    (0..columns).map(width).collect()
}

fn line(row: &[Cell], widths: &[usize]) -> String {
    let last = row
        .iter()
        .rposition(|(text, _)| !text.is_empty())
        .unwrap_or_default();
    let cells = row.iter().zip(widths).take(last + 1).enumerate();
    cells
        .filter(|(index, (_, width))| **width > 0 || *index == last)
        .map(|(index, ((text, style), width))| {
            let padding = if index == last {
                0
            } else {
                width.saturating_sub(text.chars().count())
            };
            format!("{}{:padding$}", styled(*style, text), "")
        })
        .collect::<Vec<_>>()
        .join("  ")
}

/// Creates a cell without a style.
pub fn plain(text: impl Into<String>) -> Cell {
    (text.into(), Style::new())
}
