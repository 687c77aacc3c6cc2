//! Names: what is made by the rule is read back, and no neighbour's name is ever ours.

use super::cases;
use chrono::DateTime;
use lifecycle_reaper::names::{ExecutorName, NameOwner};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn made(token: &str, executor: &str, seconds: i64, hash: u32) -> String {
    format!("runner-{token}-{executor}-{seconds}-{hash:08x}")
}

fn plain_token() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9]{1,9}", "[a-z0-9]{17}"]
}

/// Names made of few parts, so that one often begins, ends or holds another.
fn executor() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(
            prop::sample::select(vec!["ci", "eu", "prod", "c", "1700000000", "runner"]),
            1..4
        )
        .prop_map(|parts| parts.join("-")),
        "[A-Za-z0-9._-]{1,12}",
    ]
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn what_is_made_is_read_back(name in executor(), token in plain_token(), seconds in 1_000_000_000_i64..=9_999_999_999, hash in any::<u32>()) {
        let ours = ExecutorName::new(&name, vec![]).expect("a name");
        let key = made(&token, &name, seconds, hash);
        let born = DateTime::from_timestamp(seconds, 0).expect("a time");
        prop_assert_eq!(ours.owner_of(&key, &BTreeSet::new()), NameOwner::Ours(born), "{}", key);
    }

    #[test]
    fn a_neighbours_name_is_never_ours(name in executor(), other in executor(), token in plain_token(), seconds in 1_000_000_000_i64..=9_999_999_999, hash in any::<u32>()) {
        prop_assume!(name != other);
        let ours = ExecutorName::new(&name, vec![]).expect("a name");
        let key = made(&token, &other, seconds, hash);
        let owner = ours.owner_of(&key, &BTreeSet::new());
        // A name may read as another's with a longer token; then it takes more than the name.
        prop_assert!(!matches!(owner, NameOwner::Ours(_)), "{} for {}", key, name);
    }

    #[test]
    fn any_text_is_read(name in executor(), text in any::<String>(), cut in 0..60_usize) {
        let ours = ExecutorName::new(&name, vec![]).expect("a name");
        let _ = ours.owner_of(&text, &BTreeSet::new());
        let key: String = made("aa", &name, 1_700_000_000, 7).chars().take(cut).chain(text.chars().take(3)).collect();
        let is_whole = key == made("aa", &name, 1_700_000_000, 7);
        let is_read = matches!(ours.owner_of(&key, &BTreeSet::new()), NameOwner::Ours(_));
        prop_assert!(!is_read || is_whole || key.len() > made("aa", "", 1_700_000_000, 7).len());
    }
}
