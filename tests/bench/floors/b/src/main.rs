//! Floor B: a Lambda function that is ready to call AWS. It loads the SDK's configuration, makes the smallest client
//! there is, and with it the SDK's HTTPS client and its trust store. An invocation resolves credentials; the event
//! `{"call":true}` makes one call.

use aws_credential_types::provider::ProvideCredentials;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let sdk = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
    let client = aws_sdk_sts::Client::new(&sdk);
    let credentials = sdk.credentials_provider();
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| {
        if let Some(credentials) = &credentials {
            credentials.provide_credentials().await?;
        }
        if event.payload["call"] == true {
            client.get_caller_identity().send().await?;
        }
        Ok::<_, Error>(Value::from(client.config().region().map(ToString::to_string)))
    }))
    .await
}
