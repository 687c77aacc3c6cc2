//! How often and since when a task has been asked for, from what a record says of itself.

use super::{config, now, seconds};
use chrono::{DateTime, Utc};
use lifecycle_reaper::{incoming::Incoming, pace, task::Delivery};
use serde_json::{Value, json};

/// The delivery of a record with these attributes, whose event bears this time.
fn delivery(attributes: &Value, event_time: Option<DateTime<Utc>>) -> Delivery {
    let record = json!({ "messageId": "m", "body": "{}", "attributes": attributes });
    let Incoming::Batch(records) = Incoming::read(&json!({ "Records": [record] }).to_string())
    else {
        panic!("a batch");
    };
    records[0].delivery(event_time, &config(&[("MAX_RECEIVE_COUNT", "7")]), now())
}

fn sent(seconds_ago: i64) -> String {
    (now() - seconds(seconds_ago))
        .timestamp_millis()
        .to_string()
}

#[test]
fn first_seen_is_the_earlier_of_two_times() {
    let ago = |s: i64| Some(now() - seconds(s));
    for (sent_ago, event_ago, expected) in [
        (Some(100), None, 100),
        (None, Some(200), 200),
        (Some(100), Some(200), 200),
        (Some(200), Some(100), 200),
        (Some(100), Some(100), 100),
        // A clock that is ahead makes nothing younger than now.
        (Some(-50), None, 0),
        (None, Some(-50), 0),
        (Some(-50), Some(70), 70),
    ] {
        let attributes = match sent_ago {
            Some(s) => json!({ "SentTimestamp": sent(s) }),
            None => json!({}),
        };
        let delivery = delivery(&attributes, event_ago.and_then(ago));
        let age = delivery.age(now()).num_seconds();
        assert_eq!(age, expected, "sent {sent_ago:?}, event {event_ago:?}");
    }
}

#[test]
fn without_any_time_the_count_tells() {
    for count in [1, 2, 5, 9, 40] {
        let attributes = json!({ "ApproximateReceiveCount": count.to_string() });
        let delivery = delivery(&attributes, None);
        assert_eq!(delivery.count, count);
        assert_eq!(delivery.age(now()), pace::elapsed_by(count));
    }
}

#[test]
fn what_is_absent_or_garbled_is_a_first_delivery() {
    let odd = [
        json!(null),
        json!(""),
        json!("many"),
        json!("0"),
        json!("-3"),
        json!("1e3"),
        json!("99999999999999999999"),
        json!(1.5),
        json!([3]),
        json!(true),
    ];
    for count in odd {
        let attributes = json!({ "ApproximateReceiveCount": count, "SentTimestamp": count });
        let delivery = delivery(&attributes, None);
        assert_eq!(
            (delivery.count, delivery.max_count),
            (1, Some(7)),
            "{count}"
        );
    }
    for attributes in [json!(null), json!("x"), json!([]), json!(3)] {
        assert_eq!(delivery(&attributes, None).count, 1, "{attributes}");
    }
    // SQS writes numbers as strings; a test tool may not.
    for count in [json!("4"), json!(4), json!(" 4 ")] {
        let attributes = json!({ "ApproximateReceiveCount": count });
        assert_eq!(delivery(&attributes, None).count, 4, "{count}");
    }
}
