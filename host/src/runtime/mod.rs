//! From assignment to tasks to workers: threads, supervision, health, the order of shutdown. The only room that starts threads and
//! hears signals.

mod assignment;
pub mod control;
mod ending;
pub mod health;
mod hosts;
mod idle;
mod instance;
mod lag;
pub mod letters;
mod levels;
mod limits;
mod lineage;
mod lines;
mod matching;
mod membership;
mod opener;
mod plan;
mod refusals;
mod rehearsal;
mod restores;
mod rollout;
mod signals;
mod supervisor;
mod thread;
mod ticker;
mod walk;
mod worker;

pub use control::Control;
pub use ending::Ending;
pub use health::{Health, Snapshot};
pub use hosts::Hosts;
pub use lag::{Lags, PartitionLag, ProcessorLag};
pub use lines::Lines;
pub use plan::{Plan, Plugins, Report};
pub use refusals::Refusals;
pub use restores::{RestoreProgress, Restores, ShowRestore};
pub use supervisor::{End, OpenAdmin, RunOptions, run};
pub use walk::{Stretch, settled_ends, walk};

use crate::components::Store;
use crate::config::{Application, LogKind};
use crate::kafka::Kafka;
use crate::local::{AbsentLog, LocalLog};
use crate::model::log::Log;
use crate::model::{Clock, Fault, SystemClock};
use instance::StateFolder;
use rollout::{Ledger, Shelf, Starting};
use std::sync::Arc;

/// What every thread of a running host shares.
pub struct Shared {
    pub application: Application,
    pub log: Arc<dyn Log>,
    pub clock: SystemClock,
    pub health: Arc<Health>,
    pub restores: Restores,
    pub limits: limits::Limits,
    pub lags: Lags,
    pub hosts: Arc<Hosts>,
    /// Stable over restarts: kept in the state folder.
    pub instance: String,
    pub ending: Arc<Ending>,
}

/// Opens the log that an application file names. `Transient` where the brokers are away.
pub fn open_log(application: &Application) -> Result<Arc<dyn Log>, Fault> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    Ok(match &application.log {
        LogKind::Kafka(kafka) => Arc::new(Kafka::connect(kafka, clock)?),
        LogKind::Local { dir } => Arc::new(LocalLog::open(dir, clock)?),
    })
}

/// [`open_log`] for those who only look: an embedded log that is not there yet is not made.
pub fn look_at_log(application: &Application) -> Result<Arc<dyn Log>, Fault> {
    match &application.log {
        LogKind::Local { dir } if LocalLog::is_absent(dir) => Ok(Arc::new(AbsentLog)),
        _ => open_log(application),
    }
}

/// Everything that `run` refuses, found without running and without changing anything.
pub fn check(application: &Application) -> Result<Report, Refusals> {
    let plugins = Plugins::load(application, None)?;
    StateFolder::check(&application.state_dir, &application.id)?;
    let log = look_at_log(application)?;
    let shelf = Shelf::new(plugins.engine().clone(), Store::open(&application.components)?);
    let ledger = Ledger::new(log.clone(), &application.id);
    let starting =
        Starting { application, ledger: &ledger, shelf: &shelf, clock: &SystemClock::default(), instance: "" };
    let plugins = plugins.with(starting.look(&plugins)?.components());
    let (plan, report) = Plan::check(application, &plugins, &*log)?;
    rehearsal::rehearse(&plan, &|| false)?;
    Ok(report)
}
