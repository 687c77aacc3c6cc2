//! An orphan is a resource whose owner is *proven* gone. Not proven is kept, and reported as unproven.
//!
//! Each kind of resource has one file here: how to list it, when it is an orphan, how to delete it.
//! To add one: its file, its word in [`REAPERS`], its IAM statement. A reaper doesn't decide when to act,
//! how much at once, or what comes after: that is the plan's.

mod addresses;
mod evidence;
mod fleets;
mod key_pairs;
mod liveness;
mod rules;
mod spot_requests;
mod verdict;
mod worker_groups;
mod workers;

pub use evidence::{Evidence, OwnerState, stamp};
pub use liveness::Liveness;
pub use verdict::{Judgement, Trail, Verdict};

use crate::{
    aws::Aws,
    config::Config,
    fault::Fault,
    world::{Listing, Resource, World},
};
use futures_util::future::LocalBoxFuture;

/// What became of the deletion of each id.
pub type Deletions = Vec<(String, Result<(), Fault>)>;

/// What may have to be judged.
pub type Candidates<'a> = Box<dyn Iterator<Item = Resource> + 'a>;

/// One kind of resource that a manager leaves behind.
pub trait Reaper: Sync {
    /// The word for it, in `REAP`, logs and plans.
    fn kind(&self) -> &'static str;

    /// Whether it is judged where `REAP` isn't set.
    fn is_on_by_default(&self) -> bool {
        true
    }

    /// Reads what may have to be deleted, wherever it is not an instance.
    fn list<'a>(
        &'a self,
        aws: &'a Aws,
        config: &'a Config,
    ) -> LocalBoxFuture<'a, Listing<Resource>>;

    /// What there is to be judged, in a world that was read; workers are among the instances. One after the other,
    /// because a large account has many.
    fn candidates<'a>(&self, world: &'a World, evidence: &'a Evidence<'_>) -> Candidates<'a> {
        let _ = evidence;
        let listing = world.resources.get(self.kind());
        Box::new(listing.into_iter().flat_map(|l| l.items.iter().cloned()))
    }

    /// Whether it is an orphan; `None` = it is nobody of ours, and not worth a line.
    fn judge(&self, resource: &Resource, evidence: &Evidence<'_>) -> Option<Judgement>;

    /// Deletes; one bad id never spares the others.
    fn delete<'a>(
        &'a self,
        aws: &'a Aws,
        resources: &'a [Resource],
    ) -> LocalBoxFuture<'a, Deletions>;
}

/// The workers.
pub const WORKERS: &str = "workers";
/// The EC2 fleets and spot fleet requests.
pub const FLEETS: &str = "fleets";
/// The spot requests.
pub const SPOT_REQUESTS: &str = "spot-requests";
/// The key pairs.
pub const KEY_PAIRS: &str = "key-pairs";
/// The Elastic IPs.
pub const ADDRESSES: &str = "addresses";

/// Instances of worker groups; on where `WORKER_GROUPS` names some.
pub const WORKER_GROUPS: &str = "worker-groups";

/// The mark of the first look at an address that no owner tag speaks for.
pub const FIRST_LOOK_TAG: &str = "lifecycle-reaper:unassociated-since";
/// When the instance allocated its address, in unix seconds.
pub const ALLOCATED_TAG: &str = "lifecycle-reaper:allocated-at";

/// The kinds that start instances.
pub const STARTERS: [&str; 2] = [FLEETS, SPOT_REQUESTS];

/// Every kind, in the order of deletion: what starts instances before the instances, or a persistent request
/// replaces the worker that was just terminated; what instances use after them.
pub static REAPERS: &[&dyn Reaper] = &[
    &fleets::Fleets,
    &spot_requests::SpotRequests,
    &workers::Workers,
    &key_pairs::KeyPairs,
    &addresses::Addresses,
    &worker_groups::WorkerGroups,
];

/// The reaper of a kind.
pub fn reaper(kind: &str) -> Option<&'static dyn Reaper> {
    REAPERS.iter().copied().find(|r| r.kind() == kind)
}

/// Calls `delete` on halves until the ids that fail are alone: EC2 refuses a whole request for one bad id.
///
/// Only an error that names the ids is worth splitting for; a throttled or lost call fails as it is.
async fn delete_in_halves(
    resources: &[Resource],
    chunk: usize,
    delete: impl AsyncFn(Vec<String>) -> Result<(), Fault>,
) -> Deletions {
    use crate::fault::Disposition;
    let mut done = vec![];
    let mut waiting: Vec<&[Resource]> = resources.chunks(chunk).rev().collect();
    while let Some(part) = waiting.pop() {
        let ids: Vec<String> = part.iter().map(|r| r.id.clone()).collect();
        match delete(ids.clone()).await {
            Err(fault) if part.len() > 1 && fault.disposition != Disposition::Retry => {
                let (left, right) = part.split_at(part.len() / 2);
                waiting.extend([right, left]);
            }
            result => done.extend(ids.into_iter().map(|id| (id, result.clone()))),
        }
    }
    done
}

/// Deletes one by one, a few at a time: EC2 refills five tokens a second for calls that write.
async fn delete_singly(
    resources: &[Resource],
    delete: impl AsyncFn(&Resource) -> Result<(), Fault>,
) -> Deletions {
    use futures_util::stream::{self, StreamExt};
    const AT_ONCE: usize = 5;
    let delete = &delete;
    stream::iter(resources)
        .map(|resource| async move { (resource.id.clone(), delete(resource).await) })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}
