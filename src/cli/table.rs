//! A table that fits its line, whatever the cells hold.
//!
//! Names and tags come from outside. Letters of Latin, Greek and Cyrillic script, which take one place each, are
//! shown; anything else that isn't ASCII leaves as an escape, so that neither width nor order of a line can be
//! broken.

/// One column: its heading, and whether it may be cut, and to what.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The heading.
    pub heading: &'static str,
    /// It is not cut shorter than this.
    pub shortest: usize,
}

/// Between two columns.
const GAP: &str = "  ";

/// A text that takes one place for each of its characters.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => plain.push(c),
            '\t' | '\n' | '\r' => plain.push(' '),
            '…' => plain.push(c),
            '\u{a1}'..='\u{24f}'
            | '\u{370}'..='\u{3ff}'
            | '\u{400}'..='\u{481}'
            | '\u{48a}'..='\u{52f}'
                if c.is_alphabetic() =>
            {
                plain.push(c)
            }
            _ => plain.extend(c.escape_unicode()),
        }
    }
    plain
}

/// The text, at most `width` characters long; a cut shows as `…`.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// The lines of a table, headings first, none longer than `width` as long as the columns' shortest widths allow it.
pub fn table(columns: &[Column], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| plain(cell)).collect())
        .collect();
    let widths = widths(columns, &rows, width);
    let headings = columns.iter().map(|c| c.heading.to_owned()).collect();
    std::iter::once(&headings)
        .chain(&rows)
        .map(|row| line(row, &widths))
        .collect()
}

/// Takes from the widest column that can spare it, until the line fits.
fn widths(columns: &[Column], rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let longest = |index: usize| {
        rows.iter()
            .filter_map(|row| row.get(index))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, c)| longest(index).max(c.heading.chars().count()))
        .collect();
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let spare = widths
            .iter()
            .zip(columns)
            .enumerate()
            .map(|(index, (w, c))| (w.saturating_sub(c.shortest), index));
        match spare.max() {
            Some((spare, index)) if spare > 0 => {
                if let Some(widest) = widths.get_mut(index) {
                    *widest -= 1;
                }
            }
            _ => break,
        }
    }
    widths
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<String> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{:<width$}", cut(cell, *width), width = *width))
        .collect();
    cells.join(GAP).trim_end().to_owned()
}

/// The text in lines of at most `width` characters, broken at spaces where there are any.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![];
    let mut line = String::new();
    for word in plain(text).split(' ') {
        let mut word = word.to_owned();
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        while word.chars().count() > width {
            let rest: String = word.chars().skip(width).collect();
            lines.push(word.chars().take(width).collect());
            word = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}
