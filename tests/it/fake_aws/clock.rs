//! Virtual time: a clock that stands still until somebody moves it, the sleep that waits on it,
//! and `drive`, which polls a future and moves the clock to the next wake-up whenever nothing can run.

use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_async::time::TimeSource;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

/// The one clock of a world. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<Time>>);

#[derive(Debug)]
struct Time {
    now: DateTime<Utc>,
    next_timer: u64,
    timers: BTreeMap<(DateTime<Utc>, u64), Option<Waker>>,
}

impl Clock {
    pub fn starting_at(now: DateTime<Utc>) -> Self {
        Self(Arc::new(Mutex::new(Time {
            now,
            next_timer: 0,
            timers: BTreeMap::new(),
        })))
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.time().now
    }

    /// When the earliest sleeper wants to be woken.
    pub fn next_wake_up(&self) -> Option<DateTime<Utc>> {
        self.time().timers.keys().next().map(|(due, _)| *due)
    }

    /// Moves the clock forward (never back) and wakes every sleeper that is due.
    pub fn advance_to(&self, to: DateTime<Utc>) {
        let mut due = Vec::new();
        {
            let mut time = self.time();
            time.now = time.now.max(to);
            let now = time.now;
            while let Some(mut first) = time.timers.first_entry() {
                if first.key().0 > now {
                    break;
                }
                due.extend(first.get_mut().take());
                first.remove();
            }
        }
        due.into_iter().for_each(Waker::wake);
    }

    pub fn advance(&self, by: TimeDelta) {
        self.advance_to(self.now() + by);
    }

    /// Completes once the clock shows `due`.
    pub fn sleep_until(&self, due: DateTime<Utc>) -> Sleeping {
        let mut time = self.time();
        time.next_timer += 1;
        let key = (due, time.next_timer);
        drop(time);
        Sleeping {
            clock: self.clone(),
            key,
        }
    }

    pub fn sleep(&self, duration: Duration) -> Sleeping {
        let length = TimeDelta::from_std(duration).unwrap_or(TimeDelta::days(36_500));
        self.sleep_until(self.now() + length)
    }
}

/// A sleeper. Dropped before it is due, it leaves no timer behind.
pub struct Sleeping {
    clock: Clock,
    key: (DateTime<Utc>, u64),
}

impl Future for Sleeping {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut time = self.clock.time();
        if time.now >= self.key.0 {
            return Poll::Ready(());
        }
        time.timers.insert(self.key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        self.clock.time().timers.remove(&self.key);
    }
}

impl AsyncSleep for Clock {
    fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(Clock::sleep(self, duration))
    }
}

/// The clock as one machine sees it: off by a constant.
#[derive(Clone, Debug)]
pub struct SkewedClock {
    pub clock: Clock,
    pub skew: TimeDelta,
}

impl TimeSource for SkewedClock {
    fn now(&self) -> SystemTime {
        (self.clock.now() + self.skew).into()
    }
}

/// Whether a future asked to be polled again.
#[derive(Debug)]
pub struct Woken(AtomicBool);

impl Woken {
    pub fn yes() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    /// Reads and clears.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `future` to its end in virtual time. Panics when it waits for something that will never come.
pub fn drive<F: Future>(clock: &Clock, future: F) -> F::Output {
    drive_until(clock, DateTime::<Utc>::MAX_UTC, future).expect("driven without a limit")
}

/// As `drive`, but gives up (and drops the future, as a killed function) when `limit` comes first.
pub fn drive_until<F: Future>(clock: &Clock, limit: DateTime<Utc>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let woken = Woken::yes();
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    loop {
        while woken.take() {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
        }
        match clock.next_wake_up() {
            Some(due) if due <= limit => clock.advance_to(due),
            Some(_) => {
                clock.advance_to(limit);
                return None;
            }
            None if limit < DateTime::<Utc>::MAX_UTC => {
                clock.advance_to(limit);
                return None;
            }
            None => panic!("the future waits, and no timer will ever wake it"),
        }
    }
}
