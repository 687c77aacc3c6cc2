//! One HTTPS client for all AWS clients of the process.
//!
//! Left to itself every AWS client makes an HTTPS client of its own, and reads all certificates of the system's trust
//! store when it is made and again when it first connects: most of a cold start. Here they are read once, when the
//! first call goes out, and the four clients share one pool of connections.

use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    http::{HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector},
    runtime_components::RuntimeComponents,
};

/// The client; certificates are validated against the system's trust store.
pub fn https_client() -> SharedHttpClient {
    SharedHttpClient::new(OnFirstCall(
        Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .build_https(),
    ))
}

/// Connects as the client inside does, but isn't asked to prove itself each time that an AWS client is made.
#[derive(Debug)]
struct OnFirstCall(SharedHttpClient);

impl HttpClient for OnFirstCall {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }
}
