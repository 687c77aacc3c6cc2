//! Going away: one command sweeps a group that is scaled to zero or gone until nothing is left, and says so.

use super::*;
use crate::sweeps::alive;

/// A group scaled to zero whose manager left things of all kinds behind.
fn scaled_to_zero() -> FakeAws {
    let aws = super::plan::leftovers();
    let mut world = aws.world();
    world.end_instance(M2, start());
    world
        .groups
        .get_mut(GROUP)
        .expect("the group")
        .members
        .clear();
    // The one that no proof can be had of.
    world.ec2.addresses.remove("eipalloc-00000000000000002");
    drop(world);
    aws
}

#[test]
fn without_yes_it_is_a_plan() {
    let aws = scaled_to_zero();
    let ran = run(&aws, "sweep");
    assert_eq!(ran.exit, Exit::Good);
    assert!(
        ran.out.contains("TO BE DELETED: ") && ran.out.contains("Nothing was written. With --yes"),
        "{}",
        ran.out
    );
    assert!(
        aws.writes()
            .iter()
            .all(|call| call.request.text("DryRun") == Some("true"))
    );
}

#[test]
fn a_group_at_zero_is_swept_until_nothing_is_left() {
    let aws = scaled_to_zero();
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Good, "{}{}", ran.out, ran.err);
    assert!(
        ran.out
            .contains("no manager lives and nothing of theirs is left. Destroy is safe now."),
        "{}",
        ran.out
    );
    let left = alive(&aws);
    assert!(
        left.len() == 2 && left[0] == W8,
        "only the worker with the keep tag and its key: {left:?}"
    );
    assert!(
        ran.flat().contains(&format!(
            "workers {W8}: KEPT keep-tag: carries the tag lifecycle-reaper:keep"
        )),
        "{}",
        ran.out
    );
    assert!(
        ran.err.contains("Pass 1: deleted ") && ran.err.contains("Next pass in "),
        "{}",
        ran.err
    );
    println!("{}\n{}", ran.err, ran.out);
}

#[test]
fn a_group_that_is_gone_is_swept_just_so() {
    let aws = scaled_to_zero();
    aws.world().groups.remove(GROUP);
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Good, "{}{}", ran.out, ran.err);
    assert_eq!(alive(&aws).len(), 2);
}

#[test]
fn mode_plan_of_the_function_does_not_hinder_it() {
    let aws = scaled_to_zero();
    aws.set("MODE", "plan");
    assert_eq!(run(&aws, "sweep --yes").exit, Exit::Good);
    assert_eq!(alive(&aws).len(), 2);
}

#[test]
fn nothing_left_from_the_start_is_clean_at_once() {
    let aws = scaled_to_zero();
    run(&aws, "sweep --yes");
    let (writes, began) = (aws.writes().len(), aws.now());
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Good, "{}", ran.err);
    assert!(ran.out.starts_with("Clean after 1 passes"), "{}", ran.out);
    assert_eq!(aws.writes().len(), writes);
    assert_eq!(aws.now(), began);
}

#[test]
fn what_is_unproven_is_left_listed_and_told() {
    let aws = scaled_to_zero();
    aws.world()
        .put_address("eipalloc-00000000000000009", Some("not-an-instance"));
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::PersonNeeded);
    assert!(ran.out.contains("NOT clean after "), "{}", ran.out);
    assert!(ran.flat().contains("addresses eipalloc-00000000000000009 198.51.100.2: KEPT, OWNER UNKNOWN owner-tag: its owner tag is not an instance id"), "{}", ran.out);
    assert!(!ran.out.contains("Destroy is safe"), "{}", ran.out);
    assert!(
        aws.world()
            .ec2
            .addresses
            .contains_key("eipalloc-00000000000000009")
    );
    assert_eq!(alive(&aws).len(), 3, "the rest is gone all the same");
}

#[test]
fn what_ec2_refuses_is_left_listed_and_told() {
    let aws = scaled_to_zero();
    aws.world().instance_mut(W1).termination_protection = true;
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::PersonNeeded, "{}", ran.out);
    assert!(
        ran.out.contains(&format!("workers {W1}: TO BE DELETED")),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains(W2), "{}", ran.out);
    assert!(
        ran.err
            .contains("EC2 refuses to delete 1 workers: protected or in use."),
        "{}",
        ran.err
    );
}

#[test]
fn while_a_manager_lives_it_is_not_clean_and_nothing_of_it_is_touched() {
    let aws = super::plan::leftovers();
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::PersonNeeded);
    assert!(
        ran.out.contains(&format!(
            "manager {M2} of group {GROUP}: InService, EC2 says running"
        )),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("scale their groups to zero"),
        "{}",
        ran.out
    );
    assert!(!aws.touched(W3, "TerminateInstances"));
    assert!(
        aws.touched(W1, "TerminateInstances"),
        "the leftovers of others go"
    );
}

#[test]
fn a_manager_that_is_just_going_is_waited_for() {
    let aws = super::plan::leftovers();
    {
        let mut world = aws.world();
        world.ec2.addresses.remove("eipalloc-00000000000000002");
        let group = world.groups.get_mut(GROUP).expect("the group");
        let member = group.members.get_mut(M2).expect("M2");
        member.state = "Terminating:Proceed".into();
        member.proceeds_since = Some(start() + seconds(20));
    }
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Good, "{}{}", ran.out, ran.err);
    assert!(
        aws.touched(W3, "TerminateInstances"),
        "its worker went after it"
    );
}

#[test]
fn the_time_is_bounded_and_what_is_left_is_listed() {
    let aws = scaled_to_zero();
    aws.world().put_machine_key("young", EXECUTOR, minutes(1));
    let ran = run(&aws, "sweep --yes --timeout-seconds 300");
    assert_eq!(ran.exit, Exit::PersonNeeded);
    assert!(
        ran.err.contains("The time is over (--timeout-seconds)"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("key-pairs runner-young-"), "{}", ran.out);
    assert!(
        aws.now() - start() <= seconds(300),
        "{}",
        aws.now() - start()
    );
    assert_eq!(
        run(&aws, "sweep --yes").exit,
        Exit::Good,
        "and with more time it ends"
    );
}

#[test]
fn a_long_grace_period_is_waited_for() {
    let aws = scaled_to_zero();
    aws.set("GRACE_SECONDS", "5400");
    aws.world().put_machine_key("young", EXECUTOR, minutes(1));
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Good, "{}{}", ran.out, ran.err);
    assert!(aws.now() - start() > minutes(85), "{}", aws.now() - start());
}

#[test]
fn what_is_denied_ends_it_with_an_error() {
    let aws = scaled_to_zero();
    aws.inject(Fault::Denied.on("ReleaseAddress"));
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Failed);
    assert!(
        ran.err.contains("ReleaseAddress: UnauthorizedOperation"),
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("Destroy is safe"));
    assert!(
        aws.touched(W1, "TerminateInstances"),
        "one denied kind doesn't spare the others"
    );
}

#[test]
fn what_cannot_be_read_is_never_clean() {
    let aws = scaled_to_zero();
    run(&aws, "sweep --yes");
    aws.inject(Fault::Denied.on("DescribeAddresses"));
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Failed);
    assert!(
        ran.err.contains("DescribeAddresses") && !ran.out.contains("Destroy is safe"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn a_throttled_sweep_comes_again() {
    let aws = scaled_to_zero();
    aws.inject(Fault::Throttled.on("DescribeInstances").after(1).times(8));
    let ran = run(&aws, "sweep --yes");
    assert_eq!(ran.exit, Exit::Good, "{}{}", ran.out, ran.err);
    assert_eq!(alive(&aws).len(), 2);
}

#[test]
fn what_stands_in_the_way_is_told_before_anything_is_written() {
    let aws = scaled_to_zero();
    aws.world().groups.remove(GROUP);
    let err = run(&aws, "sweep --yes").err;
    let warning = "warning: group ci-linux-asg: it doesn't exist in this account and Region";
    let at = err
        .find(warning)
        .unwrap_or_else(|| panic!("no warning in {err}"));
    assert!(at < err.find("Pass 1").expect("a pass"));
}

/// A pipe whose other end is closed.
struct Closed;

impl std::io::Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_a_plan_well_and_a_sweep_never_as_clean() {
    let aws = scaled_to_zero();
    for (line, exit) in [
        ("plan", Exit::Good),
        ("sweep", Exit::Good),
        ("sweep --yes", Exit::Failed),
    ] {
        let words = std::iter::once("lifecycle-reaper").chain(line.split_whitespace());
        let args = Args::try_parse_from(words).expect("arguments");
        let variables = aws.variables.lock().expect("unpoisoned").clone();
        let mut err = vec![];
        let mut terminal = Terminal {
            out: &mut Closed,
            err: &mut err,
            width: 100,
        };
        let ran = drive(
            &aws.clock,
            cli::run(&args, variables, async || aws.sdk_config(), &mut terminal),
        );
        assert_eq!(ran, exit, "{line}");
    }
}
