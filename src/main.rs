//! The Lambda function: cold start, then one invocation after the other.

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use lifecycle_reaper::{
    aws::{Aws, from_environment},
    config::{Config, Mode},
    handler::{Handler, Invocation},
    log,
    names::ExecutorName,
};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the environment comes in"
)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect();
    let level = log::LEVEL_VARIABLES
        .iter()
        .find_map(|name| variables.get(*name));
    let level = level.map(String::as_str).unwrap_or_default();
    tracing::subscriber::set_global_default(log::subscriber(level, std::io::stdout))?;
    // A panic is one record's failure and is reported there; this adds where it happened, as one line of the log.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("without a message");
        tracing::error!(
            at = panic.location().map(tracing::field::display),
            "panic: {text}"
        );
    }));
    let config = Config::from_vars(variables.clone()).inspect_err(|problems| {
        for problem in &problems.0 {
            tracing::error!(
                variable = problem.variable,
                "the configuration can't be used: {problem}"
            );
        }
    })?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let writes = config.mode == Mode::Enforce;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        writes,
        groups = config.groups.join(","),
        hooks = config.hooks.join(","),
        executor = config.executor.as_ref().map(ExecutorName::as_str),
        kinds = config.kinds.join(","),
        drain_timeout_seconds = config.drain_timeout.num_seconds(),
        grace_seconds = config.grace.num_seconds(),
        max_deliveries = config.max_receive_count,
        "started"
    );
    let handler = Handler::new(config, Aws::new(from_environment(&variables)));
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Box<RawValue>>| {
        let invocation = invocation(event.context);
        handler
            .handle(event.payload.get(), &invocation)
            .await
            .map_err(|fault| Diagnostic {
                error_type: "Fault".into(),
                error_message: fault.to_string(),
            })
    }))
    .await
}

fn invocation(context: lambda_runtime::Context) -> Invocation {
    let deadline = i64::try_from(context.deadline)
        .ok()
        .filter(|millis| *millis > 0)
        .and_then(chrono::DateTime::from_timestamp_millis);
    Invocation {
        request_id: context.request_id,
        function_arn: context.invoked_function_arn,
        // A runtime that names no deadline sets none.
        deadline: deadline.unwrap_or(chrono::DateTime::<chrono::Utc>::MAX_UTC),
        trace_id: context.xray_trace_id,
    }
}
