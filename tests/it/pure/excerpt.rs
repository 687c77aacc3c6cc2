//! What the SDK is given of an answer in XML: nothing of half an answer, and of a whole one all that the function reads.

use crate::fake_aws::{FakeAws, Fault, drive};
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesOutput;
use chrono::DateTime;
use lifecycle_reaper::{
    aws::{Aws, NotWhole, excerpt},
    world::{Instance, InstanceState},
};

/// A page with every kind of field that EC2 documents for an instance.
const PAGE: &str = include_str!("describe_instances.xml");
const ROOT: &str = "DescribeInstancesResponse";

fn cut(xml: &str, root: &str) -> Result<String, NotWhole> {
    excerpt(xml.as_bytes(), &[root]).map(|kept| String::from_utf8(kept.into_owned()).expect("text"))
}

/// An EC2 that answers a listing of instances with this text.
fn ec2_that_says(xml: &str) -> FakeAws {
    let aws = FakeAws::cases();
    aws.inject(Fault::Says(xml.into()).on("DescribeInstances"));
    aws
}

/// What the SDK by itself makes of this text.
fn parsed(xml: &str) -> DescribeInstancesOutput {
    let aws = ec2_that_says(xml);
    let call = aws_sdk_ec2::Client::new(&aws.sdk_config()).describe_instances();
    drive(&aws.clock, call.send()).expect("an answer")
}

/// All that the function reads of a page, as `Debug` shows it.
fn read(page: &DescribeInstancesOutput) -> Vec<String> {
    let instances = page.reservations().iter().flat_map(|r| r.instances());
    let shown = instances.map(|i| {
        let attached = |n: &aws_sdk_ec2::types::InstanceNetworkInterface| {
            n.attachment()
                .map(|a| (a.device_index(), a.attach_time().copied()))
        };
        let interfaces: Vec<_> = i.network_interfaces().iter().map(attached).collect();
        let state = i.state().and_then(|s| s.name());
        let texts = [i.instance_id(), i.key_name(), i.spot_instance_request_id()];
        let times = (i.launch_time(), i.state_transition_reason());
        let tags = i.tags();
        format!(
            "{state:?} {texts:?} {times:?} {:?} {tags:?} {interfaces:?}",
            i.platform()
        )
    });
    let next = format!("then {:?}", page.next_token());
    shown.chain([next]).collect()
}

#[test]
fn what_is_read_of_an_instance_is_left_in() {
    let kept = cut(PAGE, ROOT).expect("whole");
    let (of_whole, of_kept) = (read(&parsed(PAGE)), read(&parsed(&kept)));
    assert_eq!(of_whole, of_kept);
    for shown in [
        "sir-1",
        "05:06:07 GMT",
        "windows",
        "runner-aa-ci-linux-1741061168-00000004",
        "a <manager> & more",
        "eyJ2IjoiMiJ9",
    ] {
        assert!(of_kept.concat().contains(shown), "{shown}: {of_kept:?}");
    }
    let attached = of_kept.concat().matches("2025-03-04T04:0").count();
    assert_eq!(attached, 3 + 3, "three launch times and three attach times");
}

/// Whoever adds a field to an instance must say here what is read of it, and so finds out whether it is left in.
#[test]
fn an_instance_is_read_from_what_is_left_in() {
    let aws = ec2_that_says(&PAGE.replace("<nextToken>eyJ2IjoiMiJ9</nextToken>", ""));
    let ours = Aws::new(aws.sdk_config());
    let listing = drive(&aws.clock, ours.instances(&super::config(&[])));
    assert_eq!(listing.fault, None);
    let time = |text: &str| DateTime::parse_from_rfc3339(text).ok().map(|t| t.to_utc());
    let launched = time("2025-03-04T04:06:07Z");
    let plain = Instance {
        id: String::new(),
        state: InstanceState::Running,
        launched,
        born: launched,
        died: None,
        parent: None,
        group: None,
        key_name: None,
        spot_request: None,
        fleet: None,
        keep: false,
        windows: false,
    };
    let expected = [
        Instance {
            id: "i-0a00000000000001".into(),
            group: Some("ci-linux-asg".into()),
            keep: true,
            // Of the first interface by its index, which isn't the first in the list.
            born: time("2025-03-04T04:05:00Z"),
            ..plain.clone()
        },
        Instance {
            id: "i-0a00000000000002".into(),
            state: InstanceState::Terminated,
            died: time("2025-03-04T05:06:07Z"),
            parent: Some("i-0a00000000000001".into()),
            key_name: Some("runner-aa-ci-linux-1741061168-00000004".into()),
            spot_request: Some("sir-1".into()),
            fleet: Some("fleet-1".into()),
            ..plain.clone()
        },
        Instance {
            id: "i-0a00000000000003".into(),
            windows: true,
            ..plain
        },
    ];
    assert_eq!(listing.items, expected);
}

#[test]
fn what_nobody_reads_is_left_out() {
    let kept = cut(PAGE, ROOT).expect("whole");
    for name in [
        "imageId",
        "blockDeviceMapping",
        "attachmentId",
        "requesterId",
        "code",
        "groupSet",
    ] {
        assert!(
            PAGE.contains(name) && !kept.contains(name),
            "{name}: {kept}"
        );
    }
    let empty = kept.split_whitespace().collect::<String>();
    let whole = PAGE.split_whitespace().collect::<String>();
    assert!(4 * empty.len() < whole.len(), "{empty}");
}

#[test]
fn other_answers_are_left_as_they_are() {
    for xml in [
        PAGE.replace(ROOT, "DescribeSpotInstanceRequestsResponse"),
        "<CreateTagsResponse xmlns=\"x\"><return>true</return></CreateTagsResponse>".into(),
        "\n<CreateTagsResponse />\n".into(),
    ] {
        let root = xml
            .split(['<', ' ', '\n'])
            .find(|word| word.ends_with("Response"))
            .expect("a root");
        assert_eq!(cut(&xml, root).as_deref(), Ok(xml.as_str()));
    }
}

#[test]
fn an_answer_that_ends_anywhere_before_its_end_is_none() {
    let end = PAGE.trim_end().len();
    for length in 0..end {
        let broken = excerpt(&PAGE.as_bytes()[..length], &[ROOT]).expect_err("half an answer");
        let is_empty = length <= PAGE.find("<Describe").expect("a root");
        match broken {
            NotWhole::EndsInside(_) => {}
            NotWhole::Foreign(name) => assert!(is_empty && name.is_empty(), "{length}: {name}"),
            other => panic!("{length}: {other}"),
        }
    }
    assert!(excerpt(&PAGE.as_bytes()[..end], &[ROOT]).is_ok());
}

#[test]
fn what_is_no_answer_is_told_from_one() {
    let reason = |inside: &str| match cut(&format!("<R>{inside}"), "R") {
        Ok(kept) => format!("kept {kept}"),
        Err(why) => why.to_string(),
    };
    for (inside, expected) in [
        ("<a>1</a></R>", "kept <R><a>1</a></R>"),
        ("<a ></a\n></R >", "kept <R><a ></a\n></R >"),
        (
            "<a b=\"c\" d=\"\" /></R>",
            "kept <R><a b=\"c\" d=\"\" /></R>",
        ),
        (
            "<a\n  x:b=\"c\"\td=\"\" /></R>",
            "kept <R><a\n  x:b=\"c\"\td=\"\" /></R>",
        ),
        ("a > ü]]</R>\n", "kept <R>a > ü]]</R>\n"),
        ("<a></R>", "the answer closes <R> where it isn't open"),
        (
            "<a><b></a></b></R>",
            "the answer closes <a> where it isn't open",
        ),
        ("</R></R>", "the answer closes <R> where it isn't open"),
        ("</R><S/>", "<S> is not the answer to this call"),
        ("</R><R/>", "<R> is not the answer to this call"),
        ("<a b=\"", "the answer ends inside <a b=\">"),
        ("<a", "the answer ends inside <a>"),
    ] {
        assert_eq!(reason(inside), expected, "{inside}");
    }
    // XML allows some of this. The SDK's parser stops at the rest, and what follows would be lost.
    for inside in [
        "<!-- a -->",
        "<![CDATA[a]]>",
        "<?a b?>",
        "<?xml version=\"1.0\"?>",
        "<!DOCTYPE r>",
        "< a/>",
        "<></>",
        "<a b=c/>",
        "<a b/>",
        "<a b='c'/>",
        "<a b=\"1\"c=\"2\"/>",
        "<a =\"\"/>",
        "<a :b=\"\"/>",
        "<a b:c:d=\"\"/>",
        "<a b=\"&c;\"/>",
        "<a b=\"<\"/>",
        "<a b=\">\"/>",
        "<1/>",
        "<a$/>",
        "a]]>b",
        "\u{0}",
        "\u{1}",
        "\u{FFFE}",
        "\u{FFFF}",
    ] {
        let reason = reason(&format!("{inside}</R>"));
        assert!(
            reason.starts_with("the answer is not plain XML at"),
            "{inside}: {reason}"
        );
    }
    for (answer, expected) in [
        ("", "the answer is empty"),
        (
            "upstream connect error",
            "the answer is not plain XML at \"upstream connect error\"",
        ),
        (
            "<html><body/></html>",
            "<html> is not the answer to this call",
        ),
        ("<Rx/>", "<Rx> is not the answer to this call"),
    ] {
        assert_eq!(
            cut(answer, "R").map_err(|why| why.to_string()),
            Err(expected.into())
        );
    }
}
