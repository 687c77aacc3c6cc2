//! `FakeAws`: the world behind the SDK's HTTP client. Each request is decoded, delayed, hit by a fault or served, and logged.

use super::clock::{Clock, SkewedClock};
use super::faults::{Call, Fault, Mishap, Outcome, Rule};
use super::paging::PageFault;
use super::wire::{Answer, Request, encode, response};
use super::world::World;
use super::{autoscaling, ec2_fleets, ec2_reads, ec2_writes, sqs, ssm};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle on one world. Clones show the same world.
#[derive(Clone)]
pub struct FakeAws {
    world: Arc<Mutex<World>>,
    pub clock: Clock,
    /// The function's environment.
    pub variables: Arc<Mutex<BTreeMap<String, String>>>,
}

impl std::fmt::Debug for FakeAws {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("FakeAws")
    }
}

impl FakeAws {
    pub fn new(world: World) -> Self {
        let clock = world.clock.clone();
        Self {
            world: Arc::new(Mutex::new(world)),
            clock,
            variables: Arc::default(),
        }
    }

    /// The world, to be read and changed. Not to be held while the function runs.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Lets time pass, with all that happens by itself meanwhile.
    pub fn advance(&self, by: TimeDelta) {
        self.clock.advance(by);
        self.world().settle();
    }

    pub fn inject(&self, rule: Rule) {
        self.world().rules.push(rule);
    }

    /// What the SDK clients need: this world as their network, its clock, its sleep, invented credentials.
    pub fn sdk_config(&self) -> SdkConfig {
        self.sdk_config_skewed(TimeDelta::zero())
    }

    /// As `sdk_config`, for a machine whose clock is off.
    pub fn sdk_config_skewed(&self, skew: TimeDelta) -> SdkConfig {
        let credentials =
            aws_sdk_ec2::config::Credentials::new("AKIDINVENTED", "secret", None, None, "test");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.world().region.clone()))
            .credentials_provider(aws_sdk_ec2::config::SharedCredentialsProvider::new(
                credentials,
            ))
            .http_client(self.clone())
            .time_source(SkewedClock {
                clock: self.clock.clone(),
                skew,
            })
            .sleep_impl(self.clock.clone())
            .build()
    }

    async fn exchange(&self, http: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = Request::decode(&http);
        let (entry, mishap) = self.log(&request);
        if mishap.there > TimeDelta::zero() {
            self.clock.sleep_until(self.now() + mishap.there).await;
        }
        match mishap.fault {
            Some(Fault::Refused) => return Err(self.no_connection(entry, "connection refused")),
            Some(Fault::Hanging) => {
                self.no_connection(entry, "hanging");
                std::future::pending::<()>().await;
            }
            Some(Fault::Panics) => panic!("{} was told to panic", request.operation),
            _ => {}
        }
        let reply = self.reply(entry, &request, mishap.fault.as_ref());
        if mishap.fault == Some(Fault::EffectThenSilence) {
            std::future::pending::<()>().await;
        }
        if mishap.back > TimeDelta::zero() {
            self.clock.sleep_until(self.now() + mishap.back).await;
        }
        Ok(reply)
    }

    /// Enters the call in the log and decides what happens to it.
    fn log(&self, request: &Request) -> (usize, Mishap) {
        let mut world = self.world();
        let (now, run) = (world.now(), world.run);
        let hit = world
            .rules
            .iter_mut()
            .find_map(|rule| rule.hits(request).then(|| rule.fault.clone()));
        let mut mishap = match (hit, world.draw.take()) {
            (Some(fault), draw) => {
                world.draw = draw;
                Mishap {
                    fault: Some(fault),
                    ..Mishap::default()
                }
            }
            (None, Some(mut draw)) => {
                let mishap = draw(request, now, run);
                world.draw = Some(draw);
                mishap
            }
            (None, None) => Mishap::default(),
        };
        let latency = match mishap.fault {
            Some(Fault::Latency(latency)) => latency,
            _ => world.latency,
        };
        mishap.there += latency / 2;
        mishap.back += latency - latency / 2;
        world.moments += 1;
        let moment = world.moments;
        world.calls.push(Call {
            at: now,
            moment,
            request: request.clone(),
            outcome: Outcome::Pending,
            fault: mishap.fault.clone(),
            run,
        });
        (world.calls.len() - 1, mishap)
    }

    fn no_connection(&self, entry: usize, why: &'static str) -> ConnectorError {
        self.world().calls[entry].outcome = Outcome::NoConnection;
        ConnectorError::io(why.into())
    }

    fn reply(&self, entry: usize, request: &Request, fault: Option<&Fault>) -> HttpResponse {
        let mut world = self.world();
        world.settle();
        let answer = match fault.and_then(|fault| fault.refusal(request.service)) {
            Some(refusal) => Err(refusal),
            None => serve_witnessed(
                &mut world,
                request,
                &fault.map(Fault::page_fault).unwrap_or_default(),
            ),
        };
        let unseen = matches!(
            fault,
            Some(
                Fault::LostReply
                    | Fault::Garbled
                    | Fault::Halved
                    | Fault::Says(_)
                    | Fault::EffectThenSilence
            )
        );
        world.calls[entry].outcome = match &answer {
            Err(refusal) => Outcome::Rejected(refusal.code.clone()),
            Ok(_) if unseen => Outcome::AcceptedUnseen,
            Ok(_) => Outcome::Accepted,
        };
        match fault {
            Some(Fault::LostReply) => response(500, String::new(), None),
            Some(Fault::Garbled) => response(
                200,
                "<html><body>upstream connect error</body></html>".into(),
                None,
            ),
            Some(Fault::Says(text)) => response(200, text.clone(), None),
            Some(Fault::Halved) => halved(encode(request, &answer)),
            _ => encode(request, &answer),
        }
    }
}

fn halved(whole: HttpResponse) -> HttpResponse {
    let body = whole.body().bytes().unwrap_or_default();
    let half = String::from_utf8_lossy(&body[..body.len() / 2]).into_owned();
    response(whole.status().as_u16(), half, None)
}

fn serve_witnessed(world: &mut World, request: &Request, fault: &PageFault) -> Answer {
    let mut witness = world.witness.take();
    if let Some(witness) = &mut witness {
        witness.before(world, request);
    }
    world.remember();
    let answer = serve(world, request, fault);
    if let Some(witness) = &mut witness {
        witness.after(world, request, &answer);
    }
    world.witness = witness;
    answer
}

fn serve(world: &mut World, request: &Request, fault: &PageFault) -> Answer {
    if request.text("DryRun") == Some("true") {
        let message = "Request would have succeeded, but DryRun flag is set.".into();
        return Err(super::wire::Refusal {
            status: 412,
            code: "DryRunOperation".into(),
            message,
        });
    }
    match request.operation.as_str() {
        "DescribeInstances" => ec2_reads::describe_instances(world, request, fault),
        "DescribeKeyPairs" => ec2_reads::describe_key_pairs(world, request, fault),
        "DescribeSpotInstanceRequests" => {
            ec2_reads::describe_spot_instance_requests(world, request, fault)
        }
        "DescribeAddresses" => ec2_reads::describe_addresses(world, request, fault),
        "DescribeFleets" => ec2_fleets::describe_fleets(world, request, fault),
        "DescribeSpotFleetRequests" => {
            ec2_fleets::describe_spot_fleet_requests(world, request, fault)
        }
        "TerminateInstances" => ec2_writes::terminate_instances(world, request),
        "CancelSpotInstanceRequests" => ec2_writes::cancel_spot_instance_requests(world, request),
        "DeleteKeyPair" => ec2_writes::delete_key_pair(world, request),
        "ReleaseAddress" => ec2_writes::release_address(world, request),
        "CreateTags" => ec2_writes::create_tags(world, request),
        "DeleteTags" => ec2_writes::delete_tags(world, request),
        "DeleteFleets" => ec2_fleets::delete_fleets(world, request),
        "CancelSpotFleetRequests" => ec2_fleets::cancel_spot_fleet_requests(world, request),
        "DescribeAutoScalingInstances" => {
            autoscaling::describe_auto_scaling_instances(world, request, fault)
        }
        "DescribeAutoScalingGroups" => {
            autoscaling::describe_auto_scaling_groups(world, request, fault)
        }
        "DescribeLifecycleHooks" => autoscaling::describe_lifecycle_hooks(world, request),
        "DescribeScalingActivities" => {
            autoscaling::describe_scaling_activities(world, request, fault)
        }
        "RecordLifecycleActionHeartbeat" => {
            autoscaling::record_lifecycle_action_heartbeat(world, request)
        }
        "CompleteLifecycleAction" => autoscaling::complete_lifecycle_action(world, request),
        "SendCommand" => ssm::send_command(world, request),
        "ListCommands" => ssm::list_commands(world, request),
        "GetCommandInvocation" => ssm::get_command_invocation(world, request),
        "DescribeInstanceInformation" => ssm::describe_instance_information(world, request),
        "SendMessage" => sqs::send_message(world, request),
        "ChangeMessageVisibility" => sqs::change_message_visibility(world, request),
        "GetQueueUrl" => sqs::get_queue_url(world, request),
        "GetQueueAttributes" => sqs::get_queue_attributes(world, request),
        other => panic!("the fake AWS does not speak {other}"),
    }
}

impl HttpConnector for FakeAws {
    fn call(&self, http: HttpRequest) -> HttpConnectorFuture {
        let fake = self.clone();
        HttpConnectorFuture::new(async move { fake.exchange(http).await })
    }
}

impl HttpClient for FakeAws {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
