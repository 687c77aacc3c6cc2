//! Progress on standard error, while something takes time.

use super::Error;
use crate::aws::Aws;
use std::{io::Write, pin::pin, time::Duration};

/// A line so often.
const INTERVAL: Duration = Duration::from_secs(2);

/// Does `work`, and says every few seconds that it goes on.
pub(super) async fn during<T>(
    aws: &Aws,
    err: &mut dyn Write,
    what: &str,
    work: impl Future<Output = T>,
) -> Result<T, Error> {
    let (began, calls) = (aws.now(), aws.calls_so_far());
    writeln!(err, "{what} …")?;
    let mut work = pin!(work);
    loop {
        if let Ok(done) = aws.within(INTERVAL, "progress", work.as_mut()).await {
            return Ok(done);
        }
        let seconds = (aws.now() - began).num_seconds();
        writeln!(
            err,
            "{what} … {seconds} s, {} calls",
            aws.calls_so_far() - calls
        )?;
    }
}
