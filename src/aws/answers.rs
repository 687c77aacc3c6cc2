//! Answers of EC2 and Auto Scaling on their way to the SDK's parser: only whole ones, as [`super::excerpt`] leaves them.
//!
//! An answer that isn't whole is one that broke on the way: the SDK asks again, and at last it is a fault to retry.
//! So is half an error: what a code means can hang on the end of its message. What isn't of AWS's making and says so by
//! its status, a proxy's page, is the SDK's to make sense of.

use super::excerpt::{NotWhole, excerpt};
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{Intercept, context::BeforeDeserializationInterceptorContextMut},
        orchestrator::Metadata,
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::{body::SdkBody, config_bag::ConfigBag};
use http_body::{Body, Frame};
use std::{
    borrow::Cow,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The outermost element of an error: EC2's, and Auto Scaling's.
const ERRORS: [&str; 2] = ["Response", "ErrorResponse"];

/// Lets whole answers pass. For services that speak AWS's query protocol.
#[derive(Debug)]
pub(super) struct WholeAnswers;

impl Intercept for WholeAnswers {
    fn name(&self) -> &'static str {
        "whole-answers"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        settings: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let answer = context.response_mut();
        let operation = settings.load::<Metadata>().map(Metadata::name);
        // So both protocols name it, and they answer also where the SDK reads nothing of it.
        // https://smithy.io/2.0/aws/protocols/aws-ec2-query-protocol.html#response-serialization
        let root = operation
            .filter(|_| answer.status().is_success())
            .map(|name| format!("{name}Response"));
        // The SDK would compare it with what is left.
        answer.headers_mut().remove("content-length");
        let inner = mem::replace(answer.body_mut(), SdkBody::taken());
        *answer.body_mut() = SdkBody::from_body_1_x(Answer {
            inner,
            root,
            text: vec![],
            is_read: false,
        });
        Ok(())
    }
}

/// The body of an answer, which is shown once all of it is there.
struct Answer {
    inner: SdkBody,
    /// `None` = it is an error.
    root: Option<String>,
    text: Vec<u8>,
    is_read: bool,
}

impl Answer {
    /// What is shown of the whole text.
    fn excerpt(&mut self) -> Result<Vec<u8>, NotWhole> {
        let text = mem::take(&mut self.text);
        let roots = match &self.root {
            Some(root) => &[root.as_str()][..],
            None => &ERRORS,
        };
        match excerpt(&text, roots) {
            Ok(Cow::Owned(excerpt)) => Ok(excerpt),
            Ok(Cow::Borrowed(_)) => Ok(text),
            Err(NotWhole::Foreign(_) | NotWhole::NotPlain(_)) if self.root.is_none() => Ok(text),
            Err(why) => Err(why),
        }
    }
}

impl Body for Answer {
    type Data = <SdkBody as Body>::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        while !self.is_read {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(frame) => {
                    let data = frame?.into_data().unwrap_or_default();
                    self.text.extend_from_slice(&data);
                }
                None => {
                    self.is_read = true;
                    let shown = self.excerpt().map(|text| Frame::data(text.into()));
                    return Poll::Ready(Some(shown.map_err(BoxError::from)));
                }
            }
        }
        Poll::Ready(None)
    }
}
