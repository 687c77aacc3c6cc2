//! Those beside our managers: a live manager that no configured group has, docker-autoscaler's worker group, and a person
//! who asks the function by hand.

use super::life::manager_id;
use super::play::{MessageKind, Play};
use super::script::{ByHand, Stranger};
use super::truth::{Kind, Owner, Thing, Time, seconds};
use crate::fake_aws::cases::{EXECUTOR, machine_name};
use crate::fake_aws::world::{Instance, Member};
use serde_json::json;

pub const WORKER_GROUP: &str = "ci-workers";
/// The group that the configuration means, and the name that it has there.
const MEANT: &str = "ci-tipo";
pub const MISSPELT: &str = "ci-typo";
pub const STRANGER: &str = "i-0e000000000000001";

impl Play {
    pub fn schedule_neighbours(&mut self) {
        if let Some(stranger) = self.script.rarities.stranger {
            self.put_stranger(stranger);
        }
        if !self.script.rarities.worker_group.is_empty() {
            self.put_worker_group();
        }
        for index in 0..self.script.rarities.by_hand.len() {
            let (at, _) = self.script.rarities.by_hand[index];
            self.at(at, super::play::Happening::ByHand(index));
        }
    }

    fn insert(&mut self, id: &str, kind: Kind, owner: Owner, born: Time) {
        let thing = Thing {
            kind,
            owner,
            born,
            kept: false,
            named: false,
        };
        self.truth().things.insert(id.into(), thing);
    }

    fn put_instance(&mut self, id: &str, born: Time, key: Option<&str>, tag: Option<(&str, &str)>) {
        let mut instance = Instance {
            launched: born,
            attached: Some(born),
            key_name: key.map(Into::into),
            ..Instance::running(id, born)
        };
        if let Some((key, value)) = tag {
            instance.tags.insert(key.into(), value.into());
        }
        self.aws.world().ec2.instances.insert(id.into(), instance);
    }

    /// It lives all the time, and so what it made is never touched: a worker that is tagged with it, unless its group is
    /// misspelt, and a key without a machine.
    fn put_stranger(&mut self, stranger: Stranger) {
        let born = self.start - seconds(stranger.age);
        let group = stranger
            .misspelt
            .then_some(("aws:autoscaling:groupName", MEANT));
        self.put_instance(STRANGER, born, None, group);
        self.insert(STRANGER, Kind::Worker, Owner::Foreign, born);
        let name = |after: i64| machine_name("st1", EXECUTOR, born + seconds(after), after as u32);
        let key = self.put_key(&name(120), Owner::Foreign, false, false);
        self.insert(&key, Kind::Key, Owner::Foreign, born + seconds(120));
        if !stranger.misspelt {
            let worker = "i-0e000000000000002";
            let parent = Some(("gitlab-runner-parent-id", STRANGER));
            self.put_instance(worker, born + seconds(300), Some(&name(300)), parent);
            self.insert(worker, Kind::Worker, Owner::Foreign, born + seconds(300));
        }
    }

    /// Workers without a tag that names their manager: nothing proves whose they are.
    fn put_worker_group(&mut self) {
        self.aws
            .world()
            .put_group(WORKER_GROUP, "workers-terminate");
        for (index, (age, protected)) in
            self.script.rarities.worker_group.clone().iter().enumerate()
        {
            let id = format!("i-0d{index:015x}");
            let born = self.start - seconds(*age);
            let tag = Some(("aws:autoscaling:groupName", WORKER_GROUP));
            self.put_instance(&id, born, None, tag);
            self.insert(&id, Kind::Worker, Owner::Foreign, born);
            let member = Member {
                state: "InService".into(),
                protected_from_scale_in: *protected,
                zone: "eu-west-1a".into(),
                proceeds_since: None,
            };
            let mut world = self.aws.world();
            let group = world.groups.get_mut(WORKER_GROUP).expect("just put");
            group.members.insert(id, member);
        }
    }

    /// A person asks.
    pub fn ask_by_hand(&mut self, index: usize) {
        let (_, what) = self.script.rarities.by_hand[index];
        let (body, kind) = match what {
            ByHand::Plan => (json!({"action": "plan"}), MessageKind::Plan),
            ByHand::Sweep => (json!({"action": "sweep"}), MessageKind::Sweep),
            ByHand::Reap(number) => {
                let lives = {
                    let world = self.aws.world();
                    self.truth().lives(&world, number)
                };
                let kind = if lives || self.truth().managers[number].born.is_none() {
                    MessageKind::Lie
                } else {
                    MessageKind::Reap(number)
                };
                let ask = json!({"action": "reap", "instance_id": manager_id(number)});
                (ask, kind)
            }
        };
        self.invoke_directly(body.to_string(), kind, 1);
    }
}
