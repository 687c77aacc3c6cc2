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
    pub rarities: Rarities,
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
    /// Its own clock, which makes the times in names, is off by so much.
    pub clock: i64,
    /// Its keys and spot requests bear the owner tag from their birth.
    pub owner_tags: bool,
    /// Its group's scale-in puts it into the warm pool.
    pub warm: Option<Warm>,
}

/// A stay in the warm pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warm {
    /// The pool keeps its instances running.
    pub running: bool,
    pub then: AfterWarm,
}

/// What becomes of an instance in the warm pool, after so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterWarm {
    Stays,
    /// It is taken back into service.
    Returns(i64),
    /// It is taken back, and terminated for good so long after that.
    ReturnsAndEnds(i64, i64),
    /// The pool itself terminates it.
    Ends(i64),
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
    /// It was cut off after it had printed the line, while the jobs run on.
    HalfTruth,
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
    /// EC2 has no room for it: a key is made, and nothing is ever launched with it.
    pub launch_fails: bool,
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
    KeptAddress,
    KeptSpotRequest,
    /// Another executor's, whose name ends like ours: ours only if the token were.
    AmbiguousKey,
    AmbiguousWorker,
    AmbiguousSpotRequest,
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

/// What only some deployments have. Drawn by a stream of its own, so that the rest of a seed stays what it was.
#[derive(Clone, Debug, Default)]
pub struct Rarities {
    /// `REAP` names fleets where there are some.
    pub fleets: Vec<FleetScript>,
    /// A group of docker-autoscaler workers beside the first group: each one's age, and whether it is protected.
    pub worker_group: Vec<(i64, bool)>,
    /// `RUNNER_TOKENS` lists the tokens that contain a dash.
    pub lists_tokens: bool,
    pub stranger: Option<Stranger>,
    pub by_hand: Vec<(i64, ByHand)>,
    /// One `DescribeInstances` of so many leaves a manager out.
    pub stale_pages: Option<u32>,
    pub trouble: Option<Trouble>,
    /// A second copy of each hook's message, so many seconds later: before SSM knows of the command that the first sent.
    pub echo: Option<i64>,
}

/// What goes wrong for a while and all the time, where a manager ends.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    pub kind: TroubleKind,
    /// Of the manager with this number.
    pub manager: usize,
    pub from: i64,
    pub length: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// No queue takes a message.
    QueuesRefuse,
    /// Nobody but the queue answers, and wakes for the manager come with its hook's message.
    AllHangs,
    /// One operation is throttled for so long that a whole drain sees none of it.
    Throttled(&'static str),
}

/// A live manager that no configured group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Born so long before the beginning.
    pub age: i64,
    /// It is of a group that the configuration misspells; else its tagged worker bears a name of ours.
    pub misspelt: bool,
}

/// What a person asks of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByHand {
    Plan,
    Sweep,
    /// Of the manager with this number, dead or alive.
    Reap(usize),
}

/// An EC2 fleet, or a spot fleet request.
#[derive(Clone, Debug)]
pub struct FleetScript {
    pub owner: FleetOwner,
    /// The tag on the fleet itself that names its manager.
    pub tag: Option<&'static str>,
    pub is_spot_fleet: bool,
    /// It replaces what ends.
    pub maintains: bool,
    pub instances: usize,
    /// Beside its own, one worker of a manager that is long gone.
    pub mixed: bool,
    pub kept: bool,
    /// So long after its manager's boot, or before the beginning.
    pub at: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetOwner {
    Manager(usize),
    LongGone,
    Foreign,
}
