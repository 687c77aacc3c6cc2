//! Arbitrary worlds: few ids, names and ages, so that everything often belongs to something else.

use chrono::{DateTime, TimeDelta, Utc};
use lifecycle_reaper::{
    fault::Fault,
    reap::{ADDRESSES, KEY_PAIRS, SPOT_REQUESTS},
    world::{Instance, InstanceState, Listing, Member, Resource, World},
};
use proptest::prelude::*;

pub fn now() -> DateTime<Utc> {
    crate::fake_aws::start()
}

pub const GROUPS: [&str; 2] = ["ci-linux-asg", "somebody-elses"];
const EXECUTORS: [&str; 4] = ["ci", "ci-gpu", "eu-ci", "c"];
const TOKENS: [&str; 4] = ["aa", "bb", "a-b", "abcdefghijkl"];

pub fn manager_id(number: usize) -> String {
    format!("i-0a{number:015x}")
}

fn worker_id(number: usize) -> String {
    format!("i-0b{number:015x}")
}

fn state() -> impl Strategy<Value = InstanceState> {
    use InstanceState::*;
    prop::sample::select(vec![
        Pending,
        Running,
        Stopping,
        Stopped,
        ShuttingDown,
        Terminated,
        Unknown,
    ])
}

/// Minutes around the grace period and the births of managers; rarely in the future.
fn age() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..240_i64, 2 => prop::sample::select(vec![14, 15, 16, 59, 60, 61, 62, 5000]), 1 => -30..0_i64]
}

fn time(age: i64) -> DateTime<Utc> {
    now() - TimeDelta::minutes(age)
}

/// A manager's id, an unseen one, or something that is none.
fn owner() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        2 => Just(None),
        6 => (0..5_usize).prop_map(|n| Some(manager_id(n))),
        1 => prop::sample::select(vec!["", "unknown", "i-*"]).prop_map(|s| Some(s.to_owned())),
    ]
}

pub fn key_name(executor: usize, token: usize, age: i64) -> String {
    format!(
        "runner-{}-{}-{}-{:08x}",
        TOKENS[token],
        EXECUTORS[executor],
        time(age).timestamp(),
        0xfeed
    )
}

fn key() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        1 => Just(Some("somebodys-own-key".to_owned())),
        6 => (0..4_usize, 0..4_usize, age()).prop_map(|(e, t, a)| Some(key_name(e, t, a))),
    ]
}

fn instance(id: String, state: InstanceState, age: i64) -> Instance {
    Instance {
        id,
        state,
        launched: Some(time(age)),
        born: Some(time(age)),
        died: state.is_gone().then(|| time(age.min(5))),
        parent: None,
        key_name: None,
        spot_request: None,
        fleet: None,
        group: None,
        keep: false,
        windows: false,
    }
}

/// Managers: what EC2 says of each, and what a group says.
fn managers() -> impl Strategy<Value = (Vec<Instance>, Vec<Member>)> {
    let group = prop_oneof![4 => Just(Some(0_usize)), 1 => Just(Some(1)), 2 => Just(None)];
    let lifecycle = prop::sample::select(vec![
        "InService",
        "Terminating:Wait",
        "Terminating:Proceed",
        "Terminated",
        "Pending",
        "SomethingNew",
    ]);
    let one = (
        prop::option::weighted(0.8, state()),
        age(),
        group,
        lifecycle,
        any::<bool>(),
        prop::bool::weighted(0.95),
    );
    prop::collection::vec(one, 0..4).prop_map(|all| {
        let (mut instances, mut members) = (vec![], vec![]);
        for (n, (state, age, group, lifecycle, tagged, has_birth)) in all.into_iter().enumerate() {
            if let Some(group) = group {
                members.push(Member {
                    id: manager_id(n),
                    group: GROUPS[group].into(),
                    lifecycle: lifecycle.into(),
                    protected_from_scale_in: false,
                });
            }
            if let Some(state) = state {
                let mut manager = instance(manager_id(n), state, age);
                manager.group = group.filter(|_| tagged).map(|g| GROUPS[g].to_owned());
                manager.born = manager.born.filter(|_| has_birth);
                instances.push(manager);
            }
        }
        (instances, members)
    })
}

fn workers() -> impl Strategy<Value = Vec<Instance>> {
    let spot = prop::option::weighted(0.5, Just(()));
    let one = (
        state(),
        age(),
        owner(),
        key(),
        spot,
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(one, 0..6).prop_map(|all| {
        let worker = |(n, (state, age, parent, key_name, spot, keep)): (
            usize,
            (_, _, _, _, Option<()>, _),
        )| Instance {
            parent,
            key_name,
            spot_request: spot.filter(|_| n < 4).map(|_| format!("sir-{n}")),
            keep,
            ..instance(worker_id(n), state, age)
        };
        all.into_iter().enumerate().map(worker).collect()
    })
}

fn key_pairs(workers: &[Instance]) -> impl Strategy<Value = Vec<Resource>> + use<> {
    let of_workers: Vec<String> = workers.iter().filter_map(|w| w.key_name.clone()).collect();
    let one = (
        prop::option::weighted(0.5, 0..8_usize),
        key(),
        owner(),
        age(),
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(one, 0..6).prop_map(move |all| {
        let mut keys: Vec<Resource> = vec![];
        for (of_worker, key, owner, age, keep) in all {
            let name = of_worker.and_then(|n| of_workers.get(n).cloned()).or(key);
            let Some(name) =
                name.filter(|n| n.starts_with("runner-") && keys.iter().all(|k| k.id != *n))
            else {
                continue;
            };
            keys.push(Resource {
                id: name.clone(),
                key_name: Some(name),
                created: Some(time(age)),
                owner: owner.filter(|_| age % 3 == 0),
                keep,
                ..Resource::default()
            });
        }
        keys
    })
}

/// Requests; one that launched a worker bears its worker's key, and came before it.
fn spot_requests(workers: &[Instance]) -> impl Strategy<Value = Vec<Resource>> + use<> {
    let workers = workers.to_vec();
    let state = prop::sample::select(vec!["open", "active", "disabled"]);
    let one = (
        state,
        key(),
        owner(),
        any::<bool>(),
        age(),
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(one, 0..4).prop_map(move |all| {
        let request = |(n, (state, key_name, owner, shows_instance, age, keep)): (
            usize,
            (&str, _, Option<String>, bool, i64, _),
        )| {
            let id = format!("sir-{n}");
            let worker = workers
                .iter()
                .find(|w| w.spot_request.as_ref() == Some(&id));
            Resource {
                state: state.into(),
                key_name: worker.map_or(key_name, |w| w.key_name.clone()),
                owner: owner.filter(|_| age % 3 == 0),
                instance: worker.filter(|_| shows_instance).map(|w| w.id.clone()),
                created: worker.map_or(Some(time(age)), |w| {
                    w.launched.map(|l| l - TimeDelta::minutes(1))
                }),
                keep,
                id,
                ..Resource::default()
            }
        };
        all.into_iter().enumerate().map(request).collect()
    })
}

fn addresses() -> impl Strategy<Value = Vec<Resource>> {
    let bound = prop::sample::select(vec![
        None,
        None,
        Some("associated"),
        Some("a service manages it"),
    ]);
    let one = (
        owner(),
        bound,
        prop::option::of(age()),
        prop::option::of(age()),
        any::<bool>(),
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(one, 0..4).prop_map(|all| {
        let mut addresses = vec![];
        for (n, (owner, bound, allocated, marked, claimed, keep)) in all.into_iter().enumerate() {
            addresses.push(Resource {
                id: format!("eipalloc-{n}"),
                claimed: claimed || owner.is_none(),
                owner,
                bound,
                allocated: allocated.map(time),
                marked: marked.map(time),
                keep,
                ..Resource::default()
            });
        }
        addresses
    })
}

/// A listing that may have ended early, by a fault that passes or one that doesn't.
fn listing<T>(items: Vec<T>, ended: u8) -> Listing<T> {
    let fault = match ended {
        0 => Some(Fault::incomplete("Describe", "not now")),
        1 => Some(Fault::stop("Describe", "denied")),
        _ => None,
    };
    Listing { items, fault }
}

/// A world, read whole in most cases.
pub fn world() -> impl Strategy<Value = World> {
    let ended = || prop_oneof![12 => Just(9_u8), 1 => Just(0), 1 => Just(1)];
    let parts = (managers(), workers(), addresses());
    let ended = [ended(), ended(), ended(), ended(), ended()];
    (parts, ended).prop_flat_map(|(((managers, members), workers, addresses), ended)| {
        (spot_requests(&workers), key_pairs(&workers)).prop_map(move |(spots, keys)| {
            let instances = managers.iter().chain(&workers).cloned().collect();
            let resources = [
                (SPOT_REQUESTS, listing(spots, ended[0])),
                (KEY_PAIRS, listing(keys, ended[1])),
                (ADDRESSES, listing(addresses.clone(), ended[2])),
            ];
            World {
                resources: resources.into_iter().collect(),
                instances: listing(instances, ended[3]),
                members: listing(members.clone(), ended[4]),
                missing_groups: vec![],
            }
        })
    })
}
