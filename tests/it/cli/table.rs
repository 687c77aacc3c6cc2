//! Tables fit their line whatever is in them.

use lifecycle_reaper::cli::{Column, cut, plain, table, width};
use proptest::prelude::*;

const COLUMNS: [Column; 3] = [
    Column {
        heading: "KIND",
        shortest: 4,
    },
    Column {
        heading: "ID",
        shortest: 8,
    },
    Column {
        heading: "OWNER",
        shortest: 5,
    },
];

fn rows(cells: &[[&str; 3]]) -> Vec<Vec<String>> {
    cells
        .iter()
        .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
        .collect()
}

#[test]
fn columns_are_aligned_and_as_wide_as_they_need() {
    let lines = table(
        &COLUMNS,
        &rows(&[
            ["workers", "i-1", "i-0a11"],
            ["addresses", "eipalloc-22", "-"],
        ]),
        100,
    );
    assert_eq!(
        lines,
        [
            "KIND       ID           OWNER",
            "workers    i-1          i-0a11",
            "addresses  eipalloc-22  -"
        ]
    );
}

#[test]
fn a_long_cell_is_cut_with_an_ellipsis_and_the_others_stay_whole() {
    let key = "runner-aabbccdd-a-very-long-executor-name-1741064768-0000000a";
    let lines = table(
        &COLUMNS,
        &rows(&[["key-pairs", key, "i-0a11aa11aa11aa110"]]),
        60,
    );
    assert_eq!(
        lines[1],
        "key-pairs  runner-aabbccdd-a-very-long…  i-0a11aa11aa11aa110"
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 60),
        "{lines:?}"
    );
    let lines = table(
        &COLUMNS,
        &rows(&[["key-pairs", key, "i-0a11aa11aa11aa110"]]),
        50,
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 50),
        "{lines:?}"
    );
}

#[test]
fn what_could_break_a_line_is_escaped() {
    assert_eq!(plain("a\u{1b}[31mred"), "a\\u{1b}[31mred");
    assert_eq!(plain("right\u{202e}left"), "right\\u{202e}left");
    assert_eq!(plain("two\nlines\tand\rmore"), "two lines and more");
    assert_eq!(plain("日本"), "\\u{65e5}\\u{672c}");
    assert_eq!(plain("e\u{301}"), "e\\u{301}");
    assert_eq!(plain("Läufer Ω бегун"), "Läufer Ω бегун");
}

#[test]
fn a_cut_keeps_its_length() {
    assert_eq!(cut("abc", 3), "abc");
    assert_eq!(cut("abcd", 3), "ab…");
    assert_eq!(cut("abcd", 0), "…");
}

#[test]
fn the_width_is_the_terminals_or_a_hundred() {
    assert_eq!(width(Some("132")), 132);
    assert_eq!(width(Some(" 80 ")), 80);
    assert_eq!(
        width(Some("7")),
        40,
        "narrower than anything can be said in"
    );
    for nonsense in [None, Some(""), Some("wide"), Some("0"), Some("-5")] {
        assert_eq!(width(nonsense), 100, "{nonsense:?}");
    }
}

proptest! {
    #[test]
    fn no_line_is_longer_than_the_terminal(cells in prop::collection::vec(prop::array::uniform3(any::<String>()), 0..20), width in 30usize..200) {
        let rows: Vec<Vec<String>> = cells.iter().map(|row| row.to_vec()).collect();
        for line in table(&COLUMNS, &rows, width) {
            prop_assert!(line.chars().count() <= width, "{line:?}");
            prop_assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
        }
    }
}
