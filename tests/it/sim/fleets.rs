//! Fleets: EC2 fleets and spot fleet requests that start workers by themselves, all with one key.

use super::life::manager_id;
use super::play::{Happening, Play};
use super::script::{FleetOwner, FleetScript};
use super::truth::{Kind, Owner, Thing, Time};
use crate::fake_aws::cases::LONG_GONE;
use crate::fake_aws::world::{Fleet, Instance, Tags};

/// No name of docker-machine's.
pub const SHARED_KEY: &str = "shared-fleet-key";

fn fleet_id(index: usize, script: &FleetScript) -> String {
    let kind = if script.is_spot_fleet { "sfr" } else { "fleet" };
    format!("{kind}-12345678-1234-1234-1234-{index:012x}")
}

/// The tag by which EC2 tells an instance's fleet.
pub fn fleet_tag(fleet: &str) -> &'static str {
    if fleet.starts_with("sfr-") {
        "aws:ec2spot:fleet-request-id"
    } else {
        "aws:ec2:fleet-id"
    }
}

impl Play {
    /// Fleets of the dead were there before; those of a manager come while it runs.
    pub fn schedule_fleets(&mut self) {
        for index in 0..self.script.rarities.fleets.len() {
            let fleet = self.script.rarities.fleets[index].clone();
            match fleet.owner {
                FleetOwner::Manager(number) => {
                    let boots = self.script.managers[number].boots;
                    self.at(boots + fleet.at, Happening::Fleet(index));
                }
                FleetOwner::LongGone | FleetOwner::Foreign => {
                    let born = self.start - super::truth::seconds(fleet.at);
                    self.put_fleet(index, &fleet, born);
                }
            }
        }
        if !self.script.rarities.fleets.is_empty() {
            let born = self.start - super::truth::seconds(86_400);
            self.put_shared_key(born);
        }
    }

    fn put_shared_key(&mut self, born: Time) {
        let id = self.put_key(SHARED_KEY, Owner::Foreign, false, false);
        self.truth().things.get_mut(&id).expect("just put").born = born;
    }

    pub fn make_fleet(&mut self, index: usize) {
        let fleet = self.script.rarities.fleets[index].clone();
        let FleetOwner::Manager(number) = fleet.owner else {
            return;
        };
        if self.runs(number) {
            let now = self.now();
            self.put_fleet(index, &fleet, now);
        }
    }

    fn put_fleet(&mut self, index: usize, script: &FleetScript, born: Time) {
        let id = fleet_id(index, script);
        let (owner, manager) = match script.owner {
            FleetOwner::Manager(number) => (Owner::Manager(number), Some(manager_id(number))),
            FleetOwner::LongGone => (Owner::LongGone, Some(LONG_GONE.to_owned())),
            FleetOwner::Foreign => (Owner::Foreign, None),
        };
        let mut tags = Tags::new();
        if let (Some(key), Some(manager)) = (script.tag, &manager) {
            tags.insert(key.into(), manager.clone());
        }
        if script.kept {
            tags.insert("lifecycle-reaper:keep".into(), "1".into());
        }
        let mut members = Vec::new();
        for number in 0..script.instances + usize::from(script.mixed) {
            let is_other = number == script.instances;
            let (owner, parent) = if is_other {
                (Owner::LongGone, Some(LONG_GONE.to_owned()))
            } else {
                (owner.clone(), manager.clone())
            };
            let worker = format!("i-0f{index:07x}{number:08x}");
            let mut instance = Instance {
                launched: born,
                attached: Some(born),
                key_name: Some(SHARED_KEY.into()),
                ..Instance::running(&worker, born)
            };
            instance.tags.insert(fleet_tag(&id).into(), id.clone());
            if let Some(parent) = parent {
                instance
                    .tags
                    .insert("gitlab-runner-parent-id".into(), parent);
            }
            let thing = Thing {
                kind: Kind::Worker,
                owner,
                born,
                kept: false,
                named: false,
            };
            self.truth().things.insert(worker.clone(), thing);
            self.aws
                .world()
                .ec2
                .instances
                .insert(worker.clone(), instance);
            members.push(worker);
        }
        let thing = Thing {
            kind: Kind::Fleet,
            owner,
            born,
            kept: script.kept,
            named: script.tag.is_some(),
        };
        self.truth().things.insert(id.clone(), thing);
        let mut world = self.aws.world();
        world.remember();
        world.note(format!("the fleet {id} is made"));
        let fleet = Fleet {
            id: id.clone(),
            state: "active".into(),
            kind: if script.maintains {
                "maintain"
            } else {
                "request"
            }
            .into(),
            created: born,
            key_name: Some(SHARED_KEY.into()),
            instances: members,
            tags,
        };
        world.ec2.fleets.insert(id, fleet);
    }
}
