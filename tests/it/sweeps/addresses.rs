//! Two looks at an address that only `EIP_TAG` makes ours: the first is written down where a crash can't lose it.

use super::*;
use crate::cli::healthy;

const ADDRESS: &str = "eipalloc-00000000000000001";
const MARK: &str = "lifecycle-reaper:unassociated-since";

/// A healthy world with one unassociated address that carries `EIP_TAG`.
fn world() -> FakeAws {
    let aws = healthy();
    aws.set("EIP_TAG", "pool=ci");
    aws.world()
        .put_address(ADDRESS, None)
        .tags
        .insert("pool".into(), "ci".into());
    aws
}

fn sweep(aws: &FakeAws) {
    aws.run(SWEEP).expect("a reply");
}

fn mark(aws: &FakeAws) -> Option<String> {
    aws.world()
        .ec2
        .addresses
        .get(ADDRESS)
        .and_then(|address| address.tags.get(MARK).cloned())
}

fn is_there(aws: &FakeAws) -> bool {
    aws.world().ec2.addresses.contains_key(ADDRESS)
}

fn associate(aws: &FakeAws, association: Option<&str>) {
    aws.world()
        .ec2
        .addresses
        .get_mut(ADDRESS)
        .expect("the address")
        .association_id = association.map(Into::into);
}

#[test]
fn the_first_look_marks_and_the_second_releases() {
    let aws = world();
    sweep(&aws);
    assert_eq!(mark(&aws), Some(start().timestamp().to_string()));
    for _ in 0..14 {
        aws.advance(minutes(1));
        sweep(&aws);
        assert!(is_there(&aws), "not before the grace period has passed");
    }
    aws.advance(minutes(2));
    sweep(&aws);
    assert!(!is_there(&aws));
    assert_eq!(
        aws.calls("CreateTags").len(),
        1,
        "the first look is written down once"
    );
}

#[test]
fn a_sweep_comes_again_for_the_second_look_by_itself() {
    let aws = world();
    let course = queue::invoke_until_done(&aws, SWEEP);
    assert!(!is_there(&aws));
    assert!(
        course.took >= minutes(15) && course.took <= minutes(20),
        "{course:?}"
    );
    assert!(course.invocations <= 4, "{course:?}");
}

#[test]
fn an_association_in_between_takes_the_mark_off() {
    let aws = world();
    sweep(&aws);
    associate(&aws, Some("eipassoc-1"));
    aws.advance(minutes(10));
    sweep(&aws);
    assert_eq!(mark(&aws), None, "it was used in between");
    associate(&aws, None);
    aws.advance(minutes(10));
    sweep(&aws);
    assert!(
        is_there(&aws),
        "20 minutes after the first mark, and at the first look of a new count"
    );
    assert_eq!(
        mark(&aws),
        Some((start() + minutes(20)).timestamp().to_string())
    );
    aws.advance(minutes(16));
    sweep(&aws);
    assert!(!is_there(&aws));
}

#[test]
fn an_association_just_before_the_second_look_keeps_it() {
    let aws = world();
    sweep(&aws);
    aws.advance(minutes(20));
    associate(&aws, Some("eipassoc-1"));
    sweep(&aws);
    assert!(is_there(&aws));
    assert_eq!(mark(&aws), None);
}

#[test]
fn the_mark_survives_a_crash() {
    let aws = world();
    aws.inject(Fault::EffectThenSilence.on("CreateTags").nth(1));
    let limit = aws.now() + seconds(1);
    let handler = aws.handler();
    let invocation = lifecycle_reaper::handler::Invocation {
        request_id: "r".into(),
        function_arn: function::FUNCTION_ARN.into(),
        deadline: limit + minutes(2),
        trace_id: None,
    };
    assert!(
        drive_until(&aws.clock, limit, handler.handle(SWEEP, &invocation)).is_none(),
        "killed"
    );
    assert!(
        mark(&aws).is_some(),
        "the tag is in AWS, whatever became of the function"
    );
    aws.advance(minutes(16));
    sweep(&aws);
    assert!(
        !is_there(&aws),
        "counted from the first look, not from the crash"
    );
    assert_eq!(aws.calls("CreateTags").len(), 1);
}

#[test]
fn a_crash_before_the_mark_begins_again() {
    let aws = world();
    aws.inject(Fault::Denied.on("CreateTags").times(1));
    sweep(&aws);
    assert_eq!(mark(&aws), None);
    aws.advance(minutes(60));
    sweep(&aws);
    assert!(is_there(&aws), "never released on the strength of one look");
    assert!(mark(&aws).is_some());
}

#[test]
fn without_eip_tag_such_an_address_is_nobodys() {
    let aws = world();
    aws.unset("EIP_TAG");
    sweep(&aws);
    aws.advance(minutes(60));
    sweep(&aws);
    assert!(is_there(&aws));
    assert_eq!(mark(&aws), None);
}
