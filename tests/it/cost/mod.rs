//! What the function costs, as counts: calls by the size of the world, and a drain of hours. Times are the benchmarks'.

mod calls;
mod planner;
mod two_hours;
