//! The ranks of the command: the processes that a launcher such as `mpirun` started together.

use crate::console::Console;
use crate::failure::Failure;
use autobatch::distributed::Launch;
#[cfg(feature = "mpi")]
use std::io::{Write, sink};

/// The ranks that the command belongs to.
#[derive(Debug)]
pub(crate) struct Ranks {
    /// The connection to the other processes; `None` if no launcher started this one.
    #[cfg(feature = "mpi")]
    group: Option<autobatch::distributed::Mpi>,
}

impl Ranks {
    /// Connects this process with the others of its launcher. MPI itself says how many there are.
    #[cfg(feature = "mpi")]
    pub(crate) fn join() -> Result<Self, Failure> {
        use autobatch::distributed::{Group, Mpi};
        let launch = Launch::of_this_process();
        // A launcher may announce itself to its MPI library alone, so a process without known variables asks too.
        let is_off =
            launch == Launch::Alone && std::env::var("AUTOBATCH_MPI").is_ok_and(|word| word == "off");
        let group = (!is_off).then(Mpi::start).transpose();
        let group = group.map_err(|error| Failure::usage(error.to_string()))?;
        let group = group.filter(|group| launch != Launch::Alone || group.size() > 1);
        launch.check(group.as_ref().map_or(1, Group::size)).map_err(|why| {
            let help = "start them with a launcher of the MPI library that this command was built with: mpirun, or \
                        srun --mpi with a plugin that srun --mpi=list shows";
            Failure::usage(why).help(help)
        })?;
        Ok(Self { group })
    }

    /// Without MPI the processes of a launcher would all do the whole work.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn join() -> Result<Self, Failure> {
        Launch::of_this_process().check(1).map_err(|why| {
            let help =
                "this command was built without MPI: build it with --features mpi, or start one process";
            Failure::usage(why).help(help)
        })?;
        Ok(Self {})
    }

    /// Sends bytes of rank 0 to all ranks, and waits for all.
    #[cfg(feature = "mpi")]
    pub(crate) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        use autobatch::distributed::Group;
        match self.group() {
            Some(mut group) => Ok(group.broadcast(0, bytes).map_err(autobatch::Error::from)?),
            None => Ok(bytes.to_vec()),
        }
    }

    /// Returns the bytes: there is one rank.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(bytes.to_vec())
    }

    /// Returns the number of this rank.
    pub(crate) fn rank(&self) -> usize {
        use autobatch::distributed::Group;
        self.group().map_or(0, |group| group.rank())
    }

    /// Returns the number of ranks.
    pub(crate) fn size(&self) -> usize {
        use autobatch::distributed::Group;
        self.group().map_or(1, |group| group.size())
    }

    /// Runs a verb on this rank. Only rank 0 prints. A rank that fails ends all ranks, and one of them prints the message.
    #[cfg(feature = "mpi")]
    pub(crate) fn run<T>(
        self,
        console: &mut Console<'_>,
        verb: impl FnOnce(&Self, &mut Console<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        use autobatch::distributed::Group;
        let Some(group) = self.group.as_ref().filter(|group| group.size() > 1) else {
            return verb(&self, console);
        };
        let result = match group.rank() {
            0 => verb(&self, console),
            _ => verb(&self, &mut Console::new(&mut sink())),
        };
        let Err(failure) = &result else { return result };
        // An error that all ranks have ends with the message of rank 0.
        std::thread::sleep(std::time::Duration::from_secs(if group.rank() > 0 { 5 } else { 0 }));
        // The process ends now, so errors of printing cannot be reported.
        let _ = console.flush();
        let _ = writeln!(std::io::stderr(), "{failure}");
        group.abort(i32::from(failure.code()))
    }

    /// Runs a verb.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn run<T>(
        self,
        console: &mut Console<'_>,
        verb: impl FnOnce(&Self, &mut Console<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        verb(&self, console)
    }

    /// Returns the connection to the other processes.
    #[cfg(feature = "mpi")]
    pub(crate) fn group(&self) -> Option<autobatch::distributed::Mpi> {
        self.group.clone()
    }

    /// Returns no connection: this command was built without MPI.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn group(&self) -> Option<autobatch::distributed::Alone> {
        None
    }
}
