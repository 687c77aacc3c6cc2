//! Floor A: a Lambda function that does nothing.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(async |_: LambdaEvent<Value>| {
        Ok::<_, Error>(Value::Null)
    }))
    .await
}
