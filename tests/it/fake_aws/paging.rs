//! Pages: cut a list of items where the caller, the world and the faults say, and make the token that leads on.

use super::wire::{Refusal, refuse};

/// What a fault does to one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageFault {
    pub empty: bool,
    pub repeat_token: bool,
    pub omit: Vec<String>,
}

pub struct Page<T> {
    pub items: Vec<T>,
    pub next_token: Option<String>,
}

/// The page that `token` leads to. `items` are in order, each with the id that its place is remembered by.
pub fn cut<T>(
    items: impl Iterator<Item = (String, T)>,
    token: Option<&str>,
    size: usize,
    fault: &PageFault,
) -> Result<Page<T>, Refusal> {
    let start = match token {
        None => String::new(),
        Some(token) => match token.strip_prefix("after:") {
            Some(id) => id.to_owned(),
            None => {
                return refuse(
                    "InvalidNextToken",
                    format!("The token '{token}' is invalid"),
                );
            }
        },
    };
    let mut rest = items.filter(|(id, _)| *id > start && !fault.omit.contains(id));
    if fault.empty {
        return Ok(Page {
            items: Vec::new(),
            next_token: Some(format!("after:{start}")),
        });
    }
    let mut page = Vec::new();
    let mut last = start.clone();
    for (id, item) in rest.by_ref().take(size.max(1)) {
        last = id;
        page.push(item);
    }
    let more = rest.next().is_some();
    let next_token = match (fault.repeat_token, more) {
        (true, _) => Some(token.map_or_else(|| format!("after:{start}"), Into::into)),
        (false, true) => Some(format!("after:{last}")),
        (false, false) => None,
    };
    Ok(Page {
        items: page,
        next_token,
    })
}

/// EC2's rule for MaxResults.
pub fn checked_size(
    asked: Option<i64>,
    smallest: i64,
    largest: i64,
    world: usize,
) -> Result<usize, Refusal> {
    match asked {
        None => Ok(world),
        Some(size) if (smallest..=largest).contains(&size) => Ok(world.min(size as usize)),
        Some(size) => refuse(
            "InvalidParameterValue",
            format!(
                "Value ( {size} ) for parameter maxResults is invalid. Expecting a value between {smallest} and {largest}."
            ),
        ),
    }
}
