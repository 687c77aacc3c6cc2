//! The SSM agents: whether a drain command would reach each manager.

use super::{Finding, Level};
use crate::{
    config::{Config, Drain},
    document::Manager,
    world::Listing,
};
use chrono::TimeDelta;

/// An agent that SSM knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The instance that it runs on.
    pub instance: String,
    /// `PingStatus`: `Online`, or since when it isn't: a hint, minutes old.
    pub ping: String,
}

/// An agent registers while its instance boots.
const BOOT: TimeDelta = TimeDelta::minutes(10);

/// The managers that SSM should reach by now.
pub fn expected_agents(managers: &[Manager], config: &Config) -> Vec<String> {
    if !matches!(config.drain, Drain::Ssm { .. }) {
        return vec![];
    }
    let is_up = |m: &&Manager| {
        m.state == "running" && m.age_seconds.is_some_and(|age| age >= BOOT.num_seconds())
    };
    managers
        .iter()
        .filter(is_up)
        .map(|m| m.id.clone())
        .collect()
}

/// What is to be said of the managers' agents.
pub fn of_agents(expected: &[String], agents: &Listing<Agent>) -> Vec<Finding> {
    if let Some(fault) = &agents.fault {
        let what = format!("the agents could not be listed ({fault})");
        return vec![Finding::not_told(
            "SSM",
            what,
            "ssm:DescribeInstanceInformation",
        )];
    }
    expected
        .iter()
        .filter_map(|id| {
            let agent = agents.items.iter().find(|a| a.instance == *id);
            match agent {
                None => Some(Finding::new(
                    Level::Problem,
                    format!("manager {id}"),
                    "SSM doesn't know it",
                    "no drain command reaches it: its hook waits until the deadline, and its jobs are cut off",
                    "give it an instance profile with AmazonSSMManagedInstanceCore, a running agent and a way to SSM's endpoints",
                )),
                Some(agent) if agent.ping != "Online" => Some(Finding::new(
                    Level::Warning,
                    format!("manager {id}"),
                    format!("its SSM agent is {}", agent.ping),
                    "a drain command may not reach it",
                    "look at its agent and its way to SSM's endpoints",
                )),
                Some(_) => None,
            }
        })
        .collect()
}
