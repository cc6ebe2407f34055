//! Says in the log what keeps the store from its work, and when that is over.
//!
//! Background work that fails is tried again, and nobody waits for it: without a line in the log only
//! `/readyz` would know. Each try may fail at a file of another name, so a trouble that lasts is
//! repeated once a minute, not once a try.
//!
//! ```text
//! second    trouble    logged
//! 1         yes        WARN the store cannot do its work; it is tried again cause="…"
//! 2, 60     yes
//! 61        yes        WARN the store still cannot do its work; it is tried again cause="…" seconds=60
//! 90        no         INFO the store does its work again seconds=89
//! 91        yes        WARN the store cannot do its work; …
//! ```

use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{info, warn};

use crate::app::App;

const EVERY: Duration = Duration::from_secs(1);
const REPEAT: Duration = Duration::from_secs(60);

/// Runs until the server stops.
pub async fn run(app: App, mut stopped: watch::Receiver<bool>) {
    let mut trouble = Trouble::default();
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let app = app.clone();
        let Ok(cause) = tokio::task::spawn_blocking(move || app.engine.trouble()).await else {
            continue;
        };
        match trouble.observe(cause.is_some(), Instant::now()) {
            Some(Word::Begins) => {
                warn!(cause, "the store cannot do its work; it is tried again");
            }
            Some(Word::Lasts(seconds)) => {
                warn!(cause, seconds, "the store still cannot do its work; it is tried again");
            }
            Some(Word::Ends(seconds)) => info!(seconds, "the store does its work again"),
            None => {}
        }
    }
}

/// A line of the log about the trouble.
#[derive(Debug, PartialEq)]
enum Word {
    /// There was none before.
    Begins,
    /// It is there for so many seconds; once a minute.
    Lasts(u64),
    /// It is over, after so many seconds.
    Ends(u64),
}

/// The trouble that was seen last: when it began, and when it was spoken of.
#[derive(Default)]
struct Trouble(Option<(Instant, Instant)>);

impl Trouble {
    /// The line that is due after a look at `now`; `None` while there is nothing new.
    fn observe(&mut self, is_there: bool, now: Instant) -> Option<Word> {
        match self.0 {
            None if is_there => {
                self.0 = Some((now, now));
                Some(Word::Begins)
            }
            None => None,
            Some((began, _)) if !is_there => {
                self.0 = None;
                Some(Word::Ends((now - began).as_secs()))
            }
            Some((began, said)) if now - said >= REPEAT => {
                self.0 = Some((began, now));
                Some(Word::Lasts((now - began).as_secs()))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_said_when_it_begins_once_a_minute_and_when_it_ends() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let seen =
            [(0, false), (1, true), (2, true), (60, true), (61, true), (62, true), (90, false)];
        let said: Vec<Option<Word>> = seen
            .into_iter()
            .map(|(second, is_there)| {
                trouble.observe(is_there, start + Duration::from_secs(second))
            })
            .collect();
        let lasts = Some(Word::Lasts(60));
        assert_eq!(said, [None, Some(Word::Begins), None, None, lasts, None, Some(Word::Ends(89))]);
        // The next one is said at once.
        assert_eq!(trouble.observe(true, start + Duration::from_secs(91)), Some(Word::Begins));
    }
}
