//! Reads tables of the documentation that tests run.

/// Returns the rows of the table with that header, each cell without its code marks.
pub(crate) fn rows<'a>(page: &'a str, header: &str) -> Vec<Vec<String>> {
    let lines: Vec<&'a str> = page.lines().collect();
    let start = lines.iter().position(|line| *line == header);
    let start = start.unwrap_or_else(|| panic!("no table `{header}`"));
    lines
        .iter()
        .skip(start + 2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| cells(line))
        .collect()
}

fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\u{1}");
    let inner = line.trim_start_matches('|').trim_end_matches('|');
    inner
        .split('|')
        .map(|cell| cell.replace('\u{1}', "|"))
        .map(|cell| cell.strip_prefix(' ').unwrap_or(&cell).to_owned())
        .map(|cell| cell.strip_suffix(' ').unwrap_or(&cell).to_owned())
        .collect()
}

/// Removes the code marks of a cell that consists only of code.
pub(crate) fn code(cell: &str) -> Option<&str> {
    let double = cell
        .strip_prefix("``")
        .and_then(|rest| rest.strip_suffix("``"));
    if let Some(code) = double {
        return Some(code);
    }
    let code = cell.strip_prefix('`')?.strip_suffix('`')?;
    (!code.contains('`')).then_some(code)
}
