//! Answers of EC2 and Auto Scaling on their way to the SDK: only whole ones pass, as [`super::excerpt`] leaves them.
//!
//! An answer that isn't whole is a connection that broke: the SDK asks again, and at last it is a fault to retry. So is
//! half an error: what a code means can hang on the end of its message.

use super::excerpt::{NotWhole, excerpt};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
        SharedHttpConnector,
    },
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};

/// The outermost element of an error: EC2's, and Auto Scaling's.
const ERRORS: [&str; 2] = ["Response", "ErrorResponse"];

/// The HTTP client `inner` for services that speak AWS's query protocol.
pub(super) fn whole_answers(inner: SharedHttpClient) -> SharedHttpClient {
    SharedHttpClient::new(WholeAnswers(inner))
}

#[derive(Debug)]
struct WholeAnswers<C>(C);

impl HttpClient for WholeAnswers<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(WholeAnswers(self.0.http_connector(settings, components)))
    }
}

impl HttpConnector for WholeAnswers<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let root = root_of_answer(&request);
        let answer = self.0.call(request);
        HttpConnectorFuture::new(async move { whole(answer.await?, root).await })
    }
}

/// What the answer to this call is called: the protocol names both after the action.
fn root_of_answer(request: &HttpRequest) -> Option<String> {
    let form = std::str::from_utf8(request.body().bytes()?).ok()?;
    let action = form.split('&').find_map(|f| f.strip_prefix("Action="))?;
    Some(format!("{action}Response"))
}

async fn whole(
    mut answer: HttpResponse,
    root: Option<String>,
) -> Result<HttpResponse, ConnectorError> {
    let body = std::mem::replace(answer.body_mut(), SdkBody::taken());
    let text = ByteStream::new(body)
        .collect()
        .await
        .map_err(|broken| ConnectorError::io(broken.into()))?
        .into_bytes();
    let is_success = answer.status().is_success();
    let roots = match &root {
        Some(root) if is_success => &[root.as_str()][..],
        _ => &ERRORS,
    };
    *answer.body_mut() = match excerpt(&text, roots) {
        Ok(excerpt) => SdkBody::from(excerpt),
        // An error is one by its status, whoever on the way wrote the page about it.
        Err(NotWhole::Foreign(_) | NotWhole::NoTag(_)) if !is_success => SdkBody::from(text),
        Err(why) => return Err(ConnectorError::io(why.into())),
    };
    Ok(answer)
}
