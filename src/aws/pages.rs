//! Listings: page after page to the end, and an honest word where the end was not reached.

use crate::{fault::Fault, world::Listing};
use std::collections::BTreeSet;

/// More pages than any Region can fill: a bound for an answer that never ends.
const MOST_PAGES: usize = 1000;

/// One page of a listing, and where the next begins.
#[derive(Debug)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// `NextToken`; absent or empty on the last page.
    pub next: Option<String>,
}

/// Reads page after page to the end. A fault or a token that comes back ends it early, and the listing says so.
pub async fn pages<T>(
    operation: &'static str,
    mut page: impl AsyncFnMut(Option<String>) -> Result<Page<T>, Fault>,
) -> Listing<T> {
    let mut items = vec![];
    let mut seen = BTreeSet::new();
    let mut token = None;
    for _ in 0..MOST_PAGES {
        match page(token).await {
            Ok(read) => {
                items.extend(read.items);
                match read.next.filter(|next| !next.is_empty()) {
                    None => return Listing::complete(items),
                    Some(next) if !seen.insert(next.clone()) => {
                        return Listing {
                            items,
                            fault: Some(Fault::incomplete(
                                operation,
                                "a page token came back a second time",
                            )),
                        };
                    }
                    Some(next) => token = Some(next),
                }
            }
            Err(fault) => {
                return Listing {
                    items,
                    fault: Some(fault),
                };
            }
        }
    }
    Listing {
        items,
        fault: Some(Fault::incomplete(operation, "more pages than expected")),
    }
}

/// Lists `names` in chunks of what one call takes. A fault ends it early, and the listing says so.
pub async fn in_chunks<N, T>(
    names: &[N],
    chunk: usize,
    list: impl AsyncFn(&[N]) -> Listing<T>,
) -> Listing<T> {
    let mut items = vec![];
    for names in names.chunks(chunk) {
        // Boxed, because the futures of many calls inside one another grow beyond what the compiler lays out.
        let read = Box::pin(list(names)).await;
        items.extend(read.items);
        if read.fault.is_some() {
            return Listing {
                items,
                fault: read.fault,
            };
        }
    }
    Listing::complete(items)
}
