//! When to come again: never too soon, never too late, and differently for tasks that failed together.

use super::{config, now, seconds, terminate};
use chrono::TimeDelta;
use lifecycle_reaper::{
    drain,
    pace::{self, LONGEST_DELAY, SHORTEST_DELAY},
    task::{Delivery, InstanceId, Task},
    world::{Began, Command, Hook, Lifecycle, ManagerView},
};
use std::collections::BTreeSet;

fn delivery(count: u32, max_count: Option<u32>) -> Delivery {
    Delivery {
        first_seen: now(),
        count,
        max_count,
    }
}

fn tasks(number: u32) -> Vec<Task> {
    let of = |n| Task::Terminate {
        manager: InstanceId::parse(&format!("i-{n:017x}")).expect("an id"),
        group: "g".into(),
        hook: "h".into(),
        to_warm_pool: false,
    };
    (0..number).map(of).collect()
}

#[test]
fn the_backoff_doubles_to_a_bound() {
    for count in [0, 1, 2, 3, 4, 5, 6, 7, 8, 20, 1000, u32::MAX] {
        let full = (SHORTEST_DELAY * (1 << count.saturating_sub(1).min(10))).min(LONGEST_DELAY);
        for task in tasks(50) {
            let delay = pace::backoff(&task, &delivery(count, None));
            assert!(
                delay <= full && delay >= (full * 4 / 5).max(SHORTEST_DELAY),
                "{count}: {delay}"
            );
        }
    }
}

#[test]
fn tasks_that_failed_together_come_apart() {
    let delays: BTreeSet<_> = tasks(50)
        .iter()
        .map(|t| pace::backoff(t, &delivery(8, None)))
        .collect();
    assert!(delays.len() > 20, "{} different delays of 50", delays.len());
    // The same task draws the same, so that a twin does not double its pace.
    assert_eq!(
        pace::backoff(&tasks(1)[0], &delivery(5, None)),
        pace::backoff(&tasks(1)[0], &delivery(5, None))
    );
}

#[test]
fn a_group_that_lets_go_is_asked_soon_while_deliveries_are_many() {
    let going = ManagerView {
        lifecycle: Ok(Some(Lifecycle {
            group: "g".into(),
            state: "Terminating:Proceed".into(),
        })),
        hooks: Ok(vec![]),
        instance: Ok(None),
        command: Command::None,
        requested: None,
        began: Began::NotTold,
    };
    let wait = |count, max| pace::until_gone(&terminate(), &delivery(count, max), &going);
    assert_eq!(wait(8, None), SHORTEST_DELAY);
    assert_eq!(wait(8, Some(100)), SHORTEST_DELAY);
    // The last ones are worth more than haste.
    assert!(wait(90, Some(100)) > SHORTEST_DELAY);
}

#[test]
fn elapsed_by_is_the_sum_of_what_was_waited() {
    let rows = [
        (0, 0),
        (1, 0),
        (2, 15),
        (3, 45),
        (4, 105),
        (5, 225),
        (6, 465),
        (7, 945),
        (8, 1845),
        (9, 2745),
    ];
    for (count, expected) in rows {
        assert_eq!(pace::elapsed_by(count), seconds(expected), "{count}");
    }
    assert!(pace::elapsed_by(u32::MAX) < TimeDelta::days(12));
}

/// Over a whole drain: a heartbeat in every window, the last look at the deadline, and not too many looks.
#[test]
fn a_drain_is_looked_at_often_enough_and_not_too_often() {
    for heartbeat in [30, 60, 300, 600, 3600, 7200] {
        for timeout in [60, 600, 7200, 172_800] {
            for max in [None, Some(10), Some(50), Some(1000)] {
                let hook = Hook {
                    name: "h".into(),
                    heartbeat_timeout: seconds(heartbeat),
                    global_timeout: seconds(heartbeat * 100).min(TimeDelta::hours(48)),
                };
                let deadline = drain::deadline(
                    now(),
                    &[hook],
                    &config(&[("DRAIN_TIMEOUT_SECONDS", &timeout.to_string())]),
                )
                .at;
                let (mut at, mut count) = (now(), 1);
                while at < deadline {
                    let delivery = Delivery {
                        count,
                        ..delivery(count, max)
                    };
                    let delay = pace::while_draining(
                        &terminate(),
                        &delivery,
                        Some(seconds(heartbeat)),
                        deadline,
                        at,
                    );
                    assert!(
                        delay < seconds(heartbeat),
                        "{delay} with a heartbeat timeout of {heartbeat} s"
                    );
                    assert!(
                        delay >= seconds(1) && delay <= LONGEST_DELAY.max(seconds(heartbeat)),
                        "{delay}"
                    );
                    at += delay;
                    count += 1;
                    assert!(count < 30_000);
                }
                assert!(
                    at - deadline <= seconds(1),
                    "past the deadline by {}",
                    at - deadline
                );
                assert!(
                    i64::from(count)
                        <= 30 + (deadline - now()).num_seconds() / (heartbeat / 3).min(700),
                    "{count} looks"
                );
            }
        }
    }
}

#[test]
fn whole_seconds_are_rounded_up() {
    for (milliseconds, expected) in [
        (0, 0),
        (1, 1),
        (999, 1),
        (1000, 1),
        (1001, 2),
        (-1, 0),
        (-1000, -1),
        (-1500, -1),
    ] {
        assert_eq!(
            pace::whole_seconds(TimeDelta::milliseconds(milliseconds)),
            seconds(expected),
            "{milliseconds} ms"
        );
    }
}

#[test]
fn the_last_deliveries_by_every_maximum() {
    for max in 1..=40_u32 {
        let reserve = 2.min(max / 4);
        for count in 1..=max + 2 {
            let expected = count <= max && count >= max - reserve;
            assert_eq!(
                delivery(count, Some(max)).is_among_the_last(),
                expected,
                "{count} of {max}"
            );
        }
    }
    assert!(!delivery(1_000_000, None).is_among_the_last());
}

#[test]
fn deliveries_that_are_left_last_until_the_deadline() {
    let spread = |count, max, left| pace::spread(&delivery(count, max), seconds(left));
    assert_eq!(spread(1, Some(74), 7100), seconds(100));
    assert_eq!(spread(72, Some(74), 600), seconds(600));
    assert_eq!(spread(1, Some(74), -5), seconds(0));
    assert_eq!(spread(1, None, 7100), seconds(0));
}
