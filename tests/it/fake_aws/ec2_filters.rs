//! EC2's filters: names joined by AND, values by OR, `*` and `?` as wildcards unless escaped.

use super::wire::{Refusal, Request, refuse};
use super::world::Tags;

/// Whether an item passes all filters of the request. `attribute` answers for the filter names that this kind has.
pub fn passes<'a>(
    request: &Request,
    tags: &'a Tags,
    attribute: impl Fn(&str) -> Option<Vec<&'a str>>,
) -> Result<bool, Refusal> {
    let mut all = true;
    for (name, wanted) in request.filters() {
        if wanted.len() > 200 {
            return refuse(
                "FilterLimitExceeded",
                "The maximum number of filter values specified on a single call is 200",
            );
        }
        let held: Vec<&str> = match name.strip_prefix("tag:") {
            Some(key) => tags.get(key).map(String::as_str).into_iter().collect(),
            None if name == "tag-key" => tags.keys().map(String::as_str).collect(),
            None => match attribute(&name) {
                Some(held) => held,
                None => {
                    return refuse(
                        "InvalidParameterValue",
                        format!("The filter '{name}' is invalid"),
                    );
                }
            },
        };
        all &= held
            .iter()
            .any(|held| wanted.iter().any(|pattern| like(pattern, held)));
    }
    Ok(all)
}

/// EC2's pattern match.
pub fn like(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    like_from(&pattern, &text)
}

fn like_from(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|skip| like_from(rest, &text[skip..])),
        ['?', rest @ ..] => !text.is_empty() && like_from(rest, &text[1..]),
        ['\\', literal, rest @ ..] => text.first() == Some(literal) && like_from(rest, &text[1..]),
        [literal, rest @ ..] => text.first() == Some(literal) && like_from(rest, &text[1..]),
    }
}
