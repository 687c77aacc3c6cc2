//! The wire: an HTTP request becomes a `Request` that can be read, and an `Answer` becomes the bytes
//! that the service would have sent. The four services speak three dialects: EC2 query, Auto Scaling query, JSON.

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    Ec2,
    AutoScaling,
    Ssm,
    Sqs,
}

/// One call, decoded.
#[derive(Clone, Debug)]
pub struct Request {
    pub service: Service,
    /// The endpoint that it went to.
    pub host: String,
    pub operation: String,
    /// Query dialects: the decoded form, `InstanceId.1=i-…`. Empty for JSON.
    pub form: BTreeMap<String, String>,
    /// JSON dialects: the body. Null for query.
    pub json: Value,
}

/// What a service says no with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub code: String,
    pub message: String,
}

/// The inside of a good reply: XML without its envelope, or a JSON body.
#[derive(Clone, Debug)]
pub enum Body {
    Xml(String),
    Json(Value),
}

pub type Answer = Result<Body, Refusal>;

pub fn refuse<T>(code: &str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        status: 400,
        code: code.into(),
        message: message.into(),
    })
}

impl Request {
    pub fn decode(http: &HttpRequest) -> Self {
        let body = http
            .body()
            .bytes()
            .expect("the SDK sends its requests whole");
        let uri = http.uri();
        let host = uri
            .split_once("://")
            .map_or(uri, |(_, rest)| rest)
            .split(['/', '?'])
            .next()
            .unwrap_or_default()
            .to_owned();
        let request = match http.headers().get("x-amz-target") {
            Some(target) => Self::decode_json(target, body),
            None => Self::decode_query(body),
        };
        Self { host, ..request }
    }

    fn decode_json(target: &str, body: &[u8]) -> Self {
        let (prefix, operation) = target
            .split_once('.')
            .expect("X-Amz-Target is Service.Operation");
        let service = match prefix {
            "AmazonSSM" => Service::Ssm,
            "AmazonSQS" => Service::Sqs,
            other => panic!("the fake AWS has no service {other}"),
        };
        let json = serde_json::from_slice(body).expect("the SDK sends JSON");
        Self {
            service,
            host: String::new(),
            operation: operation.into(),
            form: BTreeMap::new(),
            json,
        }
    }

    fn decode_query(body: &[u8]) -> Self {
        let text = std::str::from_utf8(body).expect("a form is ASCII");
        let form: BTreeMap<String, String> = text
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (percent_decode(name), percent_decode(value)))
            .collect();
        let service = match form.get("Version").map(String::as_str) {
            Some("2016-11-15") => Service::Ec2,
            Some("2011-01-01") => Service::AutoScaling,
            other => panic!("the fake AWS has no query service with version {other:?}"),
        };
        let operation = form
            .get("Action")
            .expect("a query names its Action")
            .clone();
        Self {
            service,
            host: String::new(),
            operation,
            form,
            json: Value::Null,
        }
    }

    /// One parameter by its wire name: `NextToken`, `Filter.1.Name`, `QueueUrl`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.json.get(name) {
            Some(value) => value.as_str(),
            None => self.form.get(name).map(String::as_str),
        }
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        match self.json.get(name) {
            Some(value) => value.as_i64(),
            None => self.form.get(name).and_then(|text| text.parse().ok()),
        }
    }

    /// A list parameter in order: `InstanceId` (EC2), `InstanceIds` (the others).
    pub fn list(&self, name: &str) -> Vec<String> {
        if let Some(Value::Array(items)) = self.json.get(name) {
            return items
                .iter()
                .filter_map(|item| item.as_str().map(Into::into))
                .collect();
        }
        let infix = if self.service == Service::AutoScaling {
            ".member."
        } else {
            "."
        };
        (1..)
            .map_while(|index| self.form.get(&format!("{name}{infix}{index}")).cloned())
            .collect()
    }

    /// EC2's filters: name and values.
    pub fn filters(&self) -> Vec<(String, Vec<String>)> {
        (1..)
            .map_while(|index| {
                let name = self.form.get(&format!("Filter.{index}.Name"))?.clone();
                let values = (1..)
                    .map_while(|value| {
                        self.form
                            .get(&format!("Filter.{index}.Value.{value}"))
                            .cloned()
                    })
                    .collect();
                Some((name, values))
            })
            .collect()
    }

    /// Every id that this call names, whatever the parameter is called: what a test asks a write for.
    pub fn ids(&self) -> Vec<String> {
        const LISTS: [&str; 6] = [
            "InstanceId",
            "InstanceIds",
            "SpotInstanceRequestId",
            "ResourceId",
            "FleetId",
            "SpotFleetRequestId",
        ];
        const SINGLES: [&str; 4] = ["InstanceId", "KeyPairId", "KeyName", "AllocationId"];
        let mut ids: Vec<String> = LISTS.iter().flat_map(|name| self.list(name)).collect();
        ids.extend(
            SINGLES
                .iter()
                .filter_map(|name| self.text(name).map(Into::into)),
        );
        ids
    }

    pub fn names(&self, id: &str) -> bool {
        self.ids().iter().any(|named| named == id)
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.operation)?;
        for (name, value) in self
            .form
            .iter()
            .filter(|(name, _)| *name != "Action" && *name != "Version")
        {
            write!(out, " {name}={value}")?;
        }
        if !self.json.is_null() {
            write!(out, " {}", self.json)?;
        }
        Ok(())
    }
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let hex = text.get(at + 1..at + 3).expect("two digits after %");
                decoded.push(u8::from_str_radix(hex, 16).expect("hexadecimal digits after %"));
                at += 3;
            }
            b'+' => {
                decoded.push(b' ');
                at += 1;
            }
            byte => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).expect("a form decodes to UTF-8")
}

/// `<name>text</name>`, escaped.
pub fn element(name: &str, text: impl std::fmt::Display) -> String {
    let text = text.to_string();
    if text.contains(['&', '<', '>']) {
        return wrap(
            name,
            &text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;"),
        );
    }
    wrap(name, &text)
}

/// `<name>…</name>` around XML that is already written. Written out, because worlds are written often.
pub fn wrap(name: &str, inside: &str) -> String {
    let mut xml = String::with_capacity(2 * name.len() + inside.len() + 5);
    for part in ["<", name, ">", inside, "</", name, ">"] {
        xml.push_str(part);
    }
    xml
}

pub fn optional(name: &str, text: Option<&str>) -> String {
    text.map(|text| element(name, text)).unwrap_or_default()
}

pub fn iso(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The whole HTTP reply that `service` would send.
pub fn encode(request: &Request, answer: &Answer) -> HttpResponse {
    let (status, body, query_error) = match (answer, request.service) {
        (Ok(Body::Json(json)), _) => (200, json.to_string(), None),
        (Ok(Body::Xml(inside)), Service::Ec2) => {
            (200, ec2_envelope(&request.operation, inside), None)
        }
        (Ok(Body::Xml(inside)), _) => {
            (200, auto_scaling_envelope(&request.operation, inside), None)
        }
        (Err(refusal), Service::Ec2) => (refusal.status, ec2_error(refusal), None),
        (Err(refusal), Service::AutoScaling) => (refusal.status, auto_scaling_error(refusal), None),
        (Err(refusal), Service::Ssm) => (refusal.status, json_error("", refusal), None),
        (Err(refusal), Service::Sqs) => (
            refusal.status,
            json_error("com.amazonaws.sqs#", refusal),
            Some(sqs_query_error(refusal)),
        ),
    };
    response(status, body, query_error)
}

/// A reply of any bytes.
pub fn response(status: u16, body: String, query_error: Option<String>) -> HttpResponse {
    let mut http = http::Response::builder()
        .status(status)
        .header("x-amzn-requestid", REQUEST_ID);
    if let Some(query_error) = query_error {
        http = http.header("x-amzn-query-error", query_error);
    }
    let http = http.body(SdkBody::from(body)).expect("a well-formed reply");
    HttpResponse::try_from(http).expect("a reply with readable headers")
}

const REQUEST_ID: &str = "f00dfeed-0000-4000-8000-00000000cafe";

fn ec2_envelope(operation: &str, inside: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{operation}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>{REQUEST_ID}</requestId>{inside}</{operation}Response>"
    )
}

fn ec2_error(refusal: &Refusal) -> String {
    let error = element("Code", &refusal.code) + &element("Message", &refusal.message);
    let errors = wrap("Errors", &wrap("Error", &error));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response>{errors}<RequestID>{REQUEST_ID}</RequestID></Response>"
    )
}

fn auto_scaling_envelope(operation: &str, inside: &str) -> String {
    format!(
        "<{operation}Response xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\"><{operation}Result>{inside}</{operation}Result>\
         <ResponseMetadata><RequestId>{REQUEST_ID}</RequestId></ResponseMetadata></{operation}Response>"
    )
}

fn auto_scaling_error(refusal: &Refusal) -> String {
    let mut error = element(
        "Type",
        if refusal.status < 500 {
            "Sender"
        } else {
            "Receiver"
        },
    );
    write!(
        error,
        "{}{}",
        element("Code", &refusal.code),
        element("Message", &refusal.message)
    )
    .expect("a String grows");
    format!(
        "<ErrorResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\">{}<RequestId>{REQUEST_ID}</RequestId></ErrorResponse>",
        wrap("Error", &error)
    )
}

fn json_error(namespace: &str, refusal: &Refusal) -> String {
    json!({"__type": format!("{namespace}{}", refusal.code), "message": refusal.message})
        .to_string()
}

/// SQS moved from query to JSON and still sends the old code beside the new one.
fn sqs_query_error(refusal: &Refusal) -> String {
    let old = match refusal.code.as_str() {
        "QueueDoesNotExist" => "AWS.SimpleQueueService.NonExistentQueue",
        "AccessDeniedException" => "AccessDenied",
        "MessageNotInflight" => "AWS.SimpleQueueService.MessageNotInflight",
        other => other,
    };
    format!(
        "{old};{}",
        if refusal.status < 500 {
            "Sender"
        } else {
            "Receiver"
        }
    )
}
