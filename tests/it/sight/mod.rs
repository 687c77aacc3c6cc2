//! What a person can see of the function: its log lines, its metrics, and the queries that docs/logs.md gives for them.

mod capture;
mod emf;
mod insights;
mod lines;
mod queries;
mod wired;
mod writes;
