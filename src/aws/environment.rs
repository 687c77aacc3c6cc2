//! The SDK's configuration as Lambda's environment gives it: Region, credentials, endpoints.
//!
//! The SDK's own loader also knows profiles, instance metadata, containers and assumed roles. None of that exists inside
//! a function, and its code is a tenth of the package that a cold start reads. The command line uses that loader.

use super::https_client;
use aws_config::{
    BehaviorVersion, Region, SdkConfig, environment::EnvironmentVariableCredentialsProvider,
};
use aws_sdk_ec2::config::{SharedCredentialsProvider, retry::RetryConfig};
use aws_smithy_async::{
    rt::sleep::{SharedAsyncSleep, TokioSleep},
    time::{SharedTimeSource, SystemTimeSource},
};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use std::collections::BTreeMap;

/// The SDK's configuration from environment variables, by the SDK's own names for them.
pub fn from_environment(variables: &BTreeMap<String, String>) -> SdkConfig {
    let text = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    let is_set = |name: &str| text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let region = text("AWS_REGION").or_else(|| text("AWS_DEFAULT_REGION"));
    let has_chosen = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .map(text)
        .iter()
        .any(Option::is_some);
    let credentials = EnvironmentVariableCredentialsProvider::new();
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(region.cloned().map(Region::new))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .retry_config(RetryConfig::standard())
        .time_source(SharedTimeSource::new(SystemTimeSource::new()))
        .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
        .http_client(https_client(has_chosen))
        .use_fips(is_set("AWS_USE_FIPS_ENDPOINT"))
        .use_dual_stack(is_set("AWS_USE_DUALSTACK_ENDPOINT"))
        .service_config(Endpoints(variables.clone()))
        .build()
}

/// What a client asks the environment for: `AWS_ENDPOINT_URL_EC2` before `AWS_ENDPOINT_URL`.
#[derive(Debug)]
struct Endpoints(BTreeMap<String, String>);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key
            .service_id()
            .to_ascii_uppercase()
            .replace([' ', '-'], "_");
        let of_service = self.0.get(&format!("{}_{service}", key.env()));
        of_service
            .or_else(|| self.0.get(key.env()))
            .filter(|url| !url.is_empty())
            .cloned()
    }
}
