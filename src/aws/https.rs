//! One HTTPS client for all AWS clients of the process.
//!
//! Left to itself every AWS client makes an HTTPS client of its own, and reads all certificates of the system's trust
//! store when it is made and again when it first connects: most of a cold start. Here they are read once, when the
//! first call goes out, and the four clients share one pool of connections.
//!
//! The SDK would read the trust store twice over, from the file that holds all of it and from the folder beside it that
//! holds the same in a file each. The file alone takes a quarter of the time.

use aws_smithy_http_client::{
    Builder,
    tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    http::{HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector},
    runtime_components::RuntimeComponents,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Where a distribution keeps its whole trust store in one file: Amazon Linux, Debian.
const TRUST_STORES: [&str; 2] = [
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/certs/ca-certificates.crt",
];

/// The client; certificates are validated against the system's trust store, or against the one that `SSL_CERT_FILE`
/// and `SSL_CERT_DIR` name where somebody has chosen another.
pub fn https_client(has_chosen: bool) -> SharedHttpClient {
    SharedHttpClient::new(OnFirstCall {
        has_chosen,
        ..OnFirstCall::default()
    })
}

/// Makes the client inside when the first call goes out, and not each time that an AWS client is made.
#[derive(Debug, Default)]
struct OnFirstCall {
    has_chosen: bool,
    of_file: OnceLock<Option<SharedHttpClient>>,
    /// The file holds something that can't be read as a certificate.
    file_is_bad: AtomicBool,
    of_system: OnceLock<SharedHttpClient>,
}

impl OnFirstCall {
    /// With the trust store in one file, if there is such a file.
    fn of_file(&self) -> Option<&SharedHttpClient> {
        let read = || {
            let files = TRUST_STORES.iter().filter(|_| !self.has_chosen);
            let pem = files
                .filter_map(|path| std::fs::read(path).ok())
                .find(|pem| !pem.is_empty())?;
            let trust_store = TrustStore::empty().with_pem_certificate(pem);
            let context = TlsContext::builder().with_trust_store(trust_store).build();
            Some(client(context.ok()?))
        };
        self.of_file.get_or_init(read).as_ref()
    }

    fn of_system(&self) -> &SharedHttpClient {
        self.of_system.get_or_init(|| client(TlsContext::default()))
    }
}

fn client(context: TlsContext) -> SharedHttpClient {
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .tls_context(context)
        .build_https()
}

impl HttpClient for OnFirstCall {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        // The SDK panics over a certificate in a file that it can't read, and skips it in the system's store.
        let of_file = || {
            let client = self.of_file().filter(|_| !self.file_is_bad.load(Relaxed))?;
            Some(client.http_connector(settings, components))
        };
        let connector = catch_unwind(AssertUnwindSafe(of_file)).unwrap_or_else(|_| {
            self.file_is_bad.store(true, Relaxed);
            None
        });
        connector.unwrap_or_else(|| self.of_system().http_connector(settings, components))
    }
}
