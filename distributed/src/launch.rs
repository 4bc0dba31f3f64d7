//! The environment of a process as launchers set it: whether one started this process as one of several.

/// The environment of a process.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Variables in which launchers write the number of processes of this program: Open MPI, MPICH and its relatives (Hydra,
/// Cray, Intel), MVAPICH.
const COUNTS: [&str; 6] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE", "PALS_SIZE"];
/// Variables in which launchers write the number of this process. PMIx announces no count.
const RANKS: [&str; 4] = ["PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID"];

/// How a launcher started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// No launcher started it.
    Alone,
    /// A launcher started it as the only process, or does not say how many there are.
    Launched,
    /// A launcher started this many processes, at least two.
    Several(usize),
}

impl Launch {
    /// Reads the environment of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of(&|name| std::env::var(name).ok())
    }

    /// Reads an environment. A batch script of Slurm has `SLURM_NTASKS`, but is one process: only a step, which `srun`
    /// starts, has several.
    fn of(lookup: Lookup<'_>) -> Self {
        let number = |name: &str| lookup(name)?.trim().parse::<usize>().ok();
        let in_step = lookup("SLURM_STEP_ID").is_some() && lookup("SLURM_PROCID").is_some();
        let of_step = number("SLURM_STEP_NUM_TASKS").filter(|_| in_step);
        let counts = COUNTS.iter().filter_map(|name| number(name)).chain(of_step);
        match counts.max() {
            Some(count @ 2..) => Self::Several(count),
            Some(_) => Self::Launched,
            None if RANKS.iter().any(|name| number(name).is_some()) => Self::Launched,
            None => Self::Alone,
        }
    }

    /// Checks that the group of this process has the processes that the launcher started. Processes that cannot see one
    /// another would all do the whole work, and replace one another's files.
    ///
    /// # Errors
    /// A sentence about what is missing.
    pub fn check(self, ranks: usize) -> Result<(), String> {
        match self {
            Self::Several(started) if ranks < 2 => {
                Err(format!("the launcher started {started} processes, but each of them sees only itself"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Launch {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Launch::of(&|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let cases: [(&[(&str, &str)], Launch); 13] = [
            (&[], Launch::Alone),
            (&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "1")], Launch::Several(4)),
            (&[("OMPI_COMM_WORLD_SIZE", "1")], Launch::Launched),
            (&[("PMI_SIZE", "3"), ("PMI_RANK", "0")], Launch::Several(3)),
            (&[("MPI_LOCALNRANKS", "2")], Launch::Several(2)),
            (&[("MV2_COMM_WORLD_SIZE", "8")], Launch::Several(8)),
            (&[("PALS_SIZE", "2"), ("PALS_RANKID", "1")], Launch::Several(2)),
            // `srun --mpi=pmix`
            (
                &[
                    ("PMIX_RANK", "0"),
                    ("SLURM_STEP_ID", "0"),
                    ("SLURM_PROCID", "0"),
                    ("SLURM_STEP_NUM_TASKS", "4"),
                    ("SLURM_NTASKS", "4"),
                ],
                Launch::Several(4),
            ),
            // `srun` without a plugin for MPI
            (
                &[("SLURM_STEP_ID", "1"), ("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")],
                Launch::Several(2),
            ),
            (&[("PMIX_RANK", "0")], Launch::Launched),
            // A batch script is one process.
            (&[("SLURM_NTASKS", "16"), ("SLURM_JOB_ID", "7")], Launch::Alone),
            (&[("SLURM_NTASKS", "16"), ("SLURM_STEP_NUM_TASKS", "16")], Launch::Alone),
            (&[("PMI_SIZE", "many")], Launch::Alone),
        ];
        for (variables, expected) in cases {
            assert_eq!(of(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn processes_that_do_not_see_one_another_are_refused() {
        assert!(Launch::Several(4).check(1).is_err_and(|why| why.contains("started 4 processes")));
        for (launch, ranks) in [(Launch::Several(4), 4), (Launch::Launched, 1), (Launch::Alone, 1)] {
            assert_eq!(launch.check(ranks), Ok(()));
        }
    }
}
