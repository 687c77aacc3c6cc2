//! Two sweeps at once, and a sweep that is killed at any of its calls: harmless, and taken up again.

use super::{queue::invoke_until_done, *};
use crate::cli::healthy;
use futures_util::future::join;
use lifecycle_reaper::handler::{Handler, Invocation};

/// A world small enough to be swept hundreds of times, with every kind in it.
fn small() -> (FakeAws, Vec<String>) {
    let aws = healthy();
    let before = alive(&aws);
    put_leftovers(&aws, 3, 5, 2, 2);
    (aws, before)
}

async fn sweep(handler: &Handler, aws: &FakeAws) {
    let invocation = Invocation {
        request_id: "0f0e0d0c-0000-4000-8000-000000000001".into(),
        function_arn: function::FUNCTION_ARN.into(),
        deadline: aws.now() + seconds(120),
        trace_id: None,
    };
    handler.handle(SWEEP, &invocation).await.expect("a reply");
}

#[test]
fn two_sweeps_at_once_are_harmless() {
    for latency in [0, 40, 700] {
        let aws = healthy();
        let before = alive(&aws);
        put_leftovers(&aws, 60, 150, 30, 30);
        aws.world().latency = TimeDelta::milliseconds(latency);
        let (one, other) = (aws.handler(), aws.handler());
        drive(&aws.clock, join(sweep(&one, &aws), sweep(&other, &aws)));
        invoke_until_done(&aws, SWEEP);
        assert_eq!(alive(&aws), before, "latency {latency}");
        let failed: Vec<String> = aws
            .writes()
            .iter()
            .filter(|call| !call.took_effect())
            .map(ToString::to_string)
            .collect();
        let gone = |line: &String| line.contains("NotFound");
        assert!(
            failed.iter().all(gone),
            "what the other one deleted is gone, nothing worse: {failed:?}"
        );
    }
}

#[test]
fn a_sweep_killed_at_any_call_is_taken_up_again() {
    let (aws, before) = small();
    invoke_until_done(&aws, SWEEP);
    assert_eq!(alive(&aws), before);
    let calls = aws.all_calls().len();
    assert!(calls > 20, "{calls}");
    for fault in [Fault::EffectThenSilence, Fault::Hanging] {
        for number in 1..=calls {
            let (aws, before) = small();
            aws.inject(fault.clone().everywhere().nth(number));
            let handler = aws.handler();
            let limit = aws.now() + TimeDelta::milliseconds(1);
            drive_until(&aws.clock, limit, sweep(&handler, &aws));
            drop(handler);
            aws.world().rules.clear();
            invoke_until_done(&aws, SWEEP);
            assert_eq!(
                alive(&aws),
                before,
                "killed at call {number} with {fault:?}"
            );
        }
    }
    println!("killed at each of {calls} calls, before and after its effect");
}

#[test]
fn the_command_lines_sweep_may_be_killed_and_run_again_just_so() {
    for number in 1..=30 {
        let (aws, _) = small();
        aws.world().end_instance(M2, start());
        aws.world()
            .groups
            .get_mut(GROUP)
            .expect("the group")
            .members
            .clear();
        aws.inject(Fault::EffectThenSilence.everywhere().nth(number));
        kill_after(&aws, seconds(1));
        aws.world().rules.clear();
        let ran = crate::cli::run(&aws, "sweep --yes");
        assert_eq!(
            ran.exit,
            lifecycle_reaper::cli::Exit::Good,
            "killed at call {number}: {}{}",
            ran.out,
            ran.err
        );
        assert_eq!(alive(&aws), [""; 0], "killed at call {number}");
    }
}

/// Runs `sweep --yes` and drops it after so long.
fn kill_after(aws: &FakeAws, long: TimeDelta) {
    use clap::Parser;
    use lifecycle_reaper::cli::{Args, Terminal, run};
    let args = Args::try_parse_from(["lifecycle-reaper", "sweep", "--yes"]).expect("arguments");
    let variables = aws.variables.lock().expect("unpoisoned").clone();
    let (mut out, mut err) = (vec![], vec![]);
    let mut terminal = Terminal {
        out: &mut out,
        err: &mut err,
        width: 100,
    };
    let limit = aws.now() + long;
    let work = run(&args, variables, async || aws.sdk_config(), &mut terminal);
    drive_until(&aws.clock, limit, work);
}
