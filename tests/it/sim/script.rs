//! The script of one history: everything that will happen, as data. A seed draws it, the shrinker cuts it down,
//! and the same script always plays the same. Times are seconds from the beginning.

use super::mishaps::Mishaps;

#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub settings: Settings,
    pub groups: Vec<GroupScript>,
    pub managers: Vec<ManagerScript>,
    pub strays: Vec<Stray>,
    pub noise: Vec<Noise>,
    pub trigger: TriggerScript,
    pub mishaps: Mishaps,
    /// From here on nothing goes wrong any more.
    pub quiet_from: i64,
    /// Here the world is at rest.
    pub end: i64,
}

/// The function's configuration and the hook's.
#[derive(Clone, Debug)]
pub struct Settings {
    pub mode_plan: bool,
    pub drain: DrainMode,
    pub drain_timeout: i64,
    /// The drain document waits so long for the service to stop.
    pub document_waits: i64,
    pub grace: i64,
    pub worker_grace: i64,
    pub max_deletions: usize,
    pub max_receive_count: Option<u32>,
    pub heartbeat: i64,
    /// The longest that the hook waits, heartbeats or not.
    pub global: i64,
    pub eip_tag: bool,
    pub page_size: usize,
}

impl Settings {
    /// The longest that a drain may take.
    pub fn limit(&self) -> i64 {
        self.drain_timeout.min(self.global)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainMode {
    Ssm,
    Observe,
    Off,
}

#[derive(Clone, Debug)]
pub struct GroupScript {
    pub name: String,
    /// Another team's termination hook on the same group, which it completes after so long.
    pub other_hook: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct ManagerScript {
    pub group: usize,
    pub boots: i64,
    /// How its runner token reads in names.
    pub token: String,
    pub agent: Agent,
    pub workers: Vec<WorkerScript>,
    pub addresses: Vec<AddressScript>,
    /// Stopped at the first, started again at the second.
    pub stopped: Option<(i64, i64)>,
    pub end: Option<End>,
    /// Somebody ran the drain document by hand long before.
    pub old_command: Option<i64>,
}

/// How the SSM agent and the document on a manager behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Good,
    /// Takes so long to start a command.
    Slow(i64),
    /// Never registered.
    Absent,
    /// Registered, dead: commands are never delivered.
    Deaf,
    /// The first commands end without an answer.
    Fails(u8, Failure),
    /// Commands stay in progress for ever.
    Hangs,
    /// The service was killed: the document says aborted, the jobs are over.
    Aborts,
    /// Nothing to drain: the service never ran and there are no jobs.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Failed,
    ExecutionTimedOut,
    Undeliverable,
    Cancelled,
    Silent,
    Babble,
    UnknownStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub at: i64,
    pub how: EndKind,
    pub route: Route,
    /// Copies of the message that arrive so much later.
    pub duplicates: u8,
    /// The group's "Terminate Successful" arrives too.
    pub tells_success: bool,
    /// EC2's state-change event arrives too.
    pub tells_state: bool,
    /// SSM's notice of the command's end arrives too.
    pub tells_command: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// The group terminates it; the hooks wait.
    ScaleIn,
    /// It dies, and the group notices so much later.
    Dies(i64),
    /// Spot takes it back: a warning, and death two minutes later.
    SpotTakes,
    /// The group is deleted by force: no hook.
    GroupDeleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    HookToQueue,
    EventBridgeToQueue,
    EventBridgeDirect,
    Lost,
}

/// docker-machine's birth of one worker: key, then instance (by spot request or not), then tags, a moment apart.
#[derive(Clone, Debug)]
pub struct WorkerScript {
    pub at: i64,
    pub key_to_launch: i64,
    pub launch_to_tag: i64,
    pub spot: Option<Spot>,
    /// The job begins so long after the tags, and lasts so long.
    pub job_after: i64,
    pub job_for: i64,
    /// docker-machine removes it after the job.
    pub removed: bool,
    pub keep: bool,
    pub protected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub persistent: bool,
    /// None = never fulfilled.
    pub fulfilled_after: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
pub struct AddressScript {
    /// After the manager runs.
    pub after: i64,
    pub allocate_to_tag: i64,
    pub tag_to_associate: i64,
    /// Carries `EIP_TAG` and no owner.
    pub pool: bool,
    pub time_tag: bool,
    /// Taken off the manager again so long after, though it lives.
    pub let_go_after: Option<i64>,
}

/// A thing that was there before, made by nobody in this script.
#[derive(Clone, Debug)]
pub struct Stray {
    pub kind: StrayKind,
    /// How long before the beginning it was born.
    pub age: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrayKind {
    /// Tagged with a manager that nobody remembers.
    WorkerOfLongGone,
    StoppedWorkerOfLongGone,
    KeptWorkerOfLongGone,
    ProtectedWorkerOfLongGone,
    /// The parent tag is no instance id.
    WorkerOfNobody,
    /// Another executor's, its manager gone.
    ForeignWorker,
    UntaggedWorker,
    OldKey,
    KeptKey,
    /// `EXECUTOR_NAME` is a substring, a prefix, a suffix, in capitals, …
    NeighbourKey(u8),
    OpenSpotRequest,
    NeighbourSpotRequest,
    AddressOfLongGone,
    AddressOfLongGoneTimed,
    ForeignAddress,
    ServiceAddress,
    PoolAddress,
}

/// A message or an event that leads to nothing, or is broken.
#[derive(Clone, Debug)]
pub struct Noise {
    pub at: i64,
    pub kind: NoiseKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseKind {
    TestNotification,
    LaunchTransition,
    OtherGroup,
    OtherHook,
    NotJson,
    BadInstanceId,
    RebalanceRecommendation,
    /// "Terminate Successful" for a manager that lives.
    FalseSuccess,
    /// "Terminate Unsuccessful" for a manager that lives on.
    Unsuccessful,
    /// The state-change event of a manager that lives.
    FalseState,
    /// A lifecycle message for a manager that was never terminated.
    ForgedTermination,
}

#[derive(Clone, Debug)]
pub struct TriggerScript {
    pub batch_size: usize,
    pub concurrency: usize,
    pub function_timeout: i64,
    /// The queue's visibility timeout.
    pub visibility: i64,
    /// Messages arrive up to so much later.
    pub delay: i64,
    pub sweep_every: i64,
    /// The function's clock is off by so much.
    pub skew: i64,
}
