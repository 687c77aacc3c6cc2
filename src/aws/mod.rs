//! The clients, and every call that is not a reaper's. No decisions here.
//!
//! A client is built when a pass first uses it: an event that needs no AWS call costs none.
//! The clock and the sleep are the SDK configuration's own, so that a test can put its own in one place.

mod answers;
mod auto_scaling;
mod ec2;
mod environment;
mod excerpt;
mod https;
mod pages;
mod preflight;
mod queue;
mod run_command;
mod turns;

pub use ec2::{tag_value, time};
pub use environment::from_environment;
pub use excerpt::{NotWhole, excerpt};
pub use https::https_client;
pub use pages::{Page, in_chunks, pages};
pub use queue::{Queue, Undeliverable};
pub use run_command::{Evidential, NewestCommand};

use crate::{
    fault::{self, Fault},
    metrics::Cost,
    world::Time,
};
use answers::WholeAnswers;
use aws_config::{SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_ec2::config::{
    StalledStreamProtectionConfig,
    retry::{RetryPartition, TokenBucket},
};
use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{
            Intercept,
            context::{
                AfterDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
            },
        },
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::config_bag::ConfigBag;
use futures_util::future::{Either, select};
use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use turns::Turns;

/// Attempts of one call. The standard mode, because the adaptive one delays first attempts by a guess of its own,
/// and a pass has a deadline; five, because EC2 throttles a whole account and three were often not enough.
const ATTEMPTS: u32 = 5;
const CONNECT: Duration = Duration::from_secs(3);
const ATTEMPT: Duration = Duration::from_secs(12);
const OPERATION: Duration = Duration::from_secs(40);
/// The queue holds the message meanwhile: asking it must never cost a pass its time.
const QUEUE_ATTEMPT: Duration = Duration::from_secs(3);
const QUEUE_OPERATION: Duration = Duration::from_secs(8);

/// The AWS clients of one process.
#[derive(Debug)]
pub struct Aws {
    sdk: SdkConfig,
    calls: Calls,
    turns: Turns,
    auto_scaling: OnceLock<aws_sdk_autoscaling::Client>,
    ec2: OnceLock<aws_sdk_ec2::Client>,
    sqs: OnceLock<aws_sdk_sqs::Client>,
    ssm: OnceLock<aws_sdk_ssm::Client>,
}

impl Aws {
    /// Over an SDK configuration, which brings credentials, Region, endpoints, HTTP client, clock and sleep.
    pub fn new(sdk: SdkConfig) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT)
            .operation_attempt_timeout(ATTEMPT)
            .operation_timeout(OPERATION)
            .build();
        let sdk = sdk
            .into_builder()
            .timeout_config(timeouts)
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
            .build();
        Self {
            sdk,
            calls: Calls::default(),
            turns: Turns::default(),
            auto_scaling: OnceLock::new(),
            ec2: OnceLock::new(),
            sqs: OnceLock::new(),
            ssm: OnceLock::new(),
        }
    }

    /// The EC2 client.
    pub fn ec2(&self) -> &aws_sdk_ec2::Client {
        self.ec2.get_or_init(|| {
            let config = aws_sdk_ec2::config::Builder::from(&self.sdk)
                .retry_partition(retry_budget())
                .stalled_stream_protection(bodies_at_once())
                .interceptor(self.calls.clone())
                .interceptor(WholeAnswers);
            aws_sdk_ec2::Client::from_conf(config.build())
        })
    }

    fn auto_scaling(&self) -> &aws_sdk_autoscaling::Client {
        self.auto_scaling.get_or_init(|| {
            let config = aws_sdk_autoscaling::config::Builder::from(&self.sdk)
                .retry_partition(retry_budget())
                .stalled_stream_protection(bodies_at_once())
                .interceptor(self.calls.clone())
                .interceptor(WholeAnswers);
            aws_sdk_autoscaling::Client::from_conf(config.build())
        })
    }

    fn ssm(&self) -> &aws_sdk_ssm::Client {
        self.ssm.get_or_init(|| {
            let config = aws_sdk_ssm::config::Builder::from(&self.sdk)
                .retry_partition(retry_budget())
                .interceptor(self.calls.clone());
            aws_sdk_ssm::Client::from_conf(config.build())
        })
    }

    fn sqs(&self) -> &aws_sdk_sqs::Client {
        self.sqs.get_or_init(|| {
            let timeouts = TimeoutConfig::builder()
                .connect_timeout(CONNECT)
                .operation_attempt_timeout(QUEUE_ATTEMPT)
                .operation_timeout(QUEUE_OPERATION)
                .build();
            let config = aws_sdk_sqs::config::Builder::from(&self.sdk)
                .timeout_config(timeouts)
                .retry_partition(retry_budget());
            let config = config.interceptor(self.calls.clone());
            aws_sdk_sqs::Client::from_conf(config.build())
        })
    }

    /// The Region that the clients talk to.
    pub fn region(&self) -> Option<&str> {
        self.sdk.region().map(AsRef::as_ref)
    }

    /// What time it is.
    #[expect(
        clippy::disallowed_methods,
        reason = "an SdkConfig without a clock means the real one"
    )]
    pub fn now(&self) -> Time {
        self.sdk.time_source().map_or_else(
            || std::time::SystemTime::now().into(),
            |clock| clock.now().into(),
        )
    }

    /// `work`, or a fault once `limit` has passed.
    pub async fn within<T>(
        &self,
        limit: Duration,
        operation: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, Fault> {
        let Some(sleep) = self.sdk.sleep_impl() else {
            return Ok(work.await);
        };
        let sleep: SharedAsyncSleep = sleep;
        match select(pin!(work), sleep.sleep(limit)).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(Fault::out_of_time(operation)),
        }
    }

    /// Waits until `operation` may be called without taking more than our share of EC2's rate.
    pub async fn turn(&self, operation: &'static str) {
        if let Ok(wait) = self.turns.take(operation, self.now()).to_std() {
            self.rest(wait).await;
        }
    }

    /// Lets time pass.
    pub async fn rest(&self, wait: Duration) {
        if let Some(sleep) = self.sdk.sleep_impl().filter(|_| !wait.is_zero()) {
            sleep.sleep(wait).await;
        }
    }

    /// How many calls were sent to AWS since [`Self::take_cost`] was asked.
    pub fn calls_so_far(&self) -> u64 {
        self.calls.0.sent.load(Ordering::Relaxed)
    }

    /// What was sent to AWS since the last time that this was asked, attempts counted one by one.
    pub fn take_cost(&self) -> Cost {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        Cost {
            api_calls: take(&self.calls.0.sent),
            throttles: take(&self.calls.0.throttled),
        }
    }
}

/// A budget of retries of the client's own. The SDK's default one is shared by the whole process and never refilled
/// by time, so that a throttled hour would leave a warm function without retries.
fn retry_budget() -> RetryPartition {
    RetryPartition::custom("lifecycle-reaper")
        .token_bucket(TokenBucket::builder().refill_rate(1.0).build())
        .build()
}

/// For services whose answers are shown at once by [`WholeAnswers`]: until then they would look like stalled ones.
/// One that does stall is ended by [`ATTEMPT`].
fn bodies_at_once() -> StalledStreamProtectionConfig {
    StalledStreamProtectionConfig::disabled()
}

/// Counts every attempt that goes out, and every answer that asks us to slow down.
#[derive(Clone, Debug, Default)]
struct Calls(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    throttled: AtomicU64,
}

impl Intercept for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        let is_throttled = response.status().as_u16() >= 400
            && response.body().bytes().is_some_and(fault::is_throttling);
        self.0
            .throttled
            .fetch_add(is_throttled.into(), Ordering::Relaxed);
        Ok(())
    }
}
