//! Faults of the machine while a verb writes: afterwards the old file or the new one is on disk, and nothing else.

#![cfg(unix)]

use crate::{NAMES, scratch};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_autobatch");
/// The content of a file before a verb fails to replace it.
const OLD: &[u8] = b"the old content";

/// Runs a shell script with the program as `$0` and a path as `$1`.
fn shell(script: &str, path: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script, PROGRAM, path]).stdin(Stdio::null());
    command.output().expect("every system has a shell")
}

/// A new folder for one test.
fn folder(name: &str) -> String {
    let folder = scratch(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    folder
}

/// The names of the files in a folder.
fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// The files of [`writers`] that hold measured times.
const MEASURED: [&str; 4] = ["t.json", "s.json", "costs.json", "b.svg"];

/// Verbs that write a file to `$1`.
fn writers() -> Vec<(&'static str, String)> {
    let graph = format!("{}/{NAMES}", env!("CARGO_MANIFEST_DIR"));
    vec![
        ("g.abg", "\"$0\" emit treelstm --instances 40 -o \"$1\"".to_owned()),
        ("g.graph", "\"$0\" emit treelstm --instances 40 -o \"$1\"".to_owned()),
        ("p.json", format!("\"$0\" plan {graph} -o \"$1\"")),
        ("p.svg", format!("\"$0\" plan {graph} -o \"$1\"")),
        ("t.json", format!("\"$0\" execute {graph} --trace \"$1\"")),
        ("r.abg", format!("\"$0\" reduce {graph} -o \"$1\" -- false")),
        ("f.json", format!("\"$0\" fsm-train {graph} --episodes 3 -o \"$1\"")),
        ("w.safetensors", "\"$0\" train names --epochs 1 --hidden 8 --save \"$1\"".to_owned()),
        ("c.svg", "\"$0\" train names --epochs 1 --hidden 8 --curve \"$1\"".to_owned()),
        ("c.csv", "\"$0\" train names --epochs 1 --hidden 8 --curve \"$1\"".to_owned()),
        ("s.json", "\"$0\" train names --epochs 1 --hidden 8 --trace \"$1\"".to_owned()),
        ("o.npy", format!("\"$0\" execute {graph} -o \"$1\"")),
        ("o.json", format!("\"$0\" execute {graph} -o \"$1\"")),
        ("page.html", format!("\"$0\" inspect {graph} -o \"$1\"")),
        ("costs.json", "\"$0\" calibrate --turn 0 -o \"$1\"".to_owned()),
        (
            "b.svg",
            "\"$0\" sweep treelstm --batch 1,2 --hidden 4 --count 2 --rounds 1 --turn 0 -o \"$1\"".to_owned(),
        ),
    ]
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_keeps_the_old_file() {
    let folder = folder("faults_limit");
    for (name, script) in writers() {
        let path = format!("{folder}/{name}");
        std::fs::write(&path, OLD).expect("the folder exists");
        // Blocks of 512 bytes; no pipe and no terminal counts.
        let output = shell(&format!("ulimit -f 1; {script}"), &path);
        let printed = String::from_utf8_lossy(&output.stderr);
        let kept = std::fs::read(&path).expect("the file is still there");
        if output.status.success() {
            assert!(kept != OLD && kept.len() <= 1024, "{name}: {} bytes", kept.len());
        } else {
            assert!(matches!(output.status.code(), Some(3 | 4)), "{name}: {:?} {printed}", output.status);
            assert!(printed.contains("raise the limit on the size of files"), "{name}: {printed}");
            assert_eq!(kept, OLD, "{name}");
        }
        std::fs::remove_file(&path).expect("the file is there");
        assert!(names(&folder).is_empty(), "{name} left {:?}", names(&folder));
    }
}

#[test]
fn a_full_disk_is_an_error_and_keeps_the_old_file() {
    // A small disk in memory, in a namespace of its own. Some machines do not allow it.
    let mount = "mount -t tmpfs -o size=24k none \"$1\"";
    let folder = folder("faults_full");
    let try_it = |script: &str| {
        let inner = format!("{mount} && {script}");
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &inner, PROGRAM, &folder]).stdin(Stdio::null());
        command.output()
    };
    if !try_it("true").is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("AUTOBATCH_REQUIRE_FAULTS").is_none(), "no disk in memory can be mounted");
        return;
    }
    // No byte is free behind the old file.
    let fill = "dd if=/dev/zero of=\"$disk/filler\" 2>/dev/null";
    for (name, verb) in writers() {
        let script = format!(
            "disk=$1; set -- \"$1/{name}\"; printf 'the old content' > \"$1\"; {fill}; {verb} >/dev/null; echo \"code $?\"; \
             cat \"$1\"; echo; ls -A \"$disk\""
        );
        let output = try_it(&script).expect("it was just tried");
        let (printed, told) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(told.contains("free space on the disk, or name another one"), "{name}: {told}");
        let mut left = ["filler", name];
        left.sort_unstable();
        let expected = format!("code 4\nthe old content\n{}\n", left.join("\n"));
        assert_eq!(printed, expected, "{name}: {told}");
    }
}

#[test]
fn a_map_without_space_names_the_remedy_and_the_next_one_completes_it() {
    let folder = folder("faults_map");
    let train = "\"$0\" train names --epochs 1 --hidden 8 --save \"$1/w.safetensors\"";
    let inputs = "for n in 1 2 3 4 5 6 7 8 9; do echo \"Name$n\"; done > \"$1/n.txt\"";
    let map = "\"$0\" map names --weights \"$1/w.safetensors\" --data \"$1/n.txt\" --shard 4 -o";
    assert!(shell(&format!("{train} && {inputs}"), &folder).status.success());
    let failed = shell(&format!("ulimit -f 1; {map} \"$1/out\""), &folder);
    let told = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(4), "{told}");
    assert!(told.contains("raise the limit on the size of files"), "{told}");
    for out in ["out", "whole"] {
        let output = shell(&format!("{map} \"$1/{out}\""), &folder);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (found, whole) = (format!("{folder}/out"), format!("{folder}/whole"));
    assert_eq!(names(&found), names(&whole));
    for name in names(&whole) {
        let read = |folder: &str| std::fs::read(format!("{folder}/{name}")).expect("a file of the run");
        assert!(read(&found) == read(&whole), "{name}");
    }
}

#[test]
fn a_read_only_folder_and_a_read_only_file_are_errors() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("faults_read_only");
    let path = format!("{folder}/g.abg");
    std::fs::write(&path, OLD).expect("the folder exists");
    let set = |path: &str, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("the file is ours");
    };
    set(&path, 0o444);
    set(&folder, 0o555);
    let is_privileged = std::fs::write(format!("{folder}/probe"), b"").is_ok();
    let output = shell("\"$0\" emit treelstm --instances 2 -o \"$1\"", &path);
    set(&folder, 0o755);
    // A privileged user may write everywhere.
    if !is_privileged {
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(printed.contains("no permission to write there"), "{printed}");
        assert_eq!((output.status.code(), std::fs::read(&path).expect("it stays")), (Some(4), OLD.to_vec()));
        assert_eq!(names(&folder), ["g.abg"]);
    }
    // No user may write to this folder.
    if Path::new("/proc/self").exists() {
        let output = shell("\"$0\" emit treelstm --instances 2 -o \"$1\"", "/proc/none.abg");
        assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_training_that_is_killed_again_and_again_ends_with_the_bits_of_an_undisturbed_one() {
    let folder = folder("faults_killed");
    let paths = ["whole", "killed"].map(|name| format!("{folder}/{name}.safetensors"));
    let [whole, killed] = &paths;
    let train = |path: &str, resumes: bool| {
        let mut command = Command::new(PROGRAM);
        command.args(["train", "names", "--hidden", "8", "--count", "64", "--epochs", "12", "--batch", "16"]);
        command.args(["--save", path]);
        if path == killed {
            // A checkpoint after each step.
            command.args(["--save-every", "0"]);
        }
        if resumes {
            command.args(["--resume", path]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("the program was built")
    };
    let ended = train(whole, false).wait_with_output().expect("it ends");
    assert!(ended.status.success());
    let mut delay = 13;
    for _ in 0..20 {
        let mut child = train(killed, Path::new(killed).exists());
        // Different moments in the program: reading, training, writing.
        delay = (delay * 37 + 11) % 97;
        sleep(Duration::from_millis(delay));
        child.kill().expect("the child is ours");
        child.wait().expect("it was killed");
    }
    let last = train(killed, Path::new(killed).exists()).wait_with_output().expect("it ends");
    assert!(last.status.success(), "{}", String::from_utf8_lossy(&last.stderr));
    let [whole, killed] = [whole, killed].map(|path| std::fs::read(path).expect("a checkpoint"));
    assert!(whole == killed, "the bits differ");
    let left: Vec<String> = names(&folder).into_iter().filter(|name| name.ends_with(".partial")).collect();
    assert!(left.is_empty(), "a write removes what killed writers left: {left:?}");
}

/// A library that moves the wall clock by weeks, forth and back, at each look. Loaded before the others, it replaces the clock of
/// a program. The monotonic clock stays as it is, as on a machine whose wall clock is set.
const JUMPING_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

typedef int (*Clock)(clockid_t, struct timespec *);

int clock_gettime(clockid_t clock, struct timespec *at) {
  static long looks;
  Clock next = (Clock)dlsym(RTLD_NEXT, "clock_gettime");
  int code = next(clock, at);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    looks++;
    at->tv_sec += (looks % 2 ? 5000000 : -5000000) * looks;
  }
  return code;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
"#;

/// Compiles the jumping clock; `None` if this machine has no C compiler, or loads no library before the others.
fn jumping_clock(folder: &str) -> Option<String> {
    let (source, library) = (format!("{folder}/jump.c"), format!("{folder}/jump.so"));
    std::fs::write(&source, JUMPING_CLOCK).expect("the folder exists");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", &library, &source, "-ldl"]);
    if !compiler.output().is_ok_and(|output| output.status.success()) {
        return None;
    }
    let now = |clock: Option<&str>| -> Option<i64> {
        let mut date = Command::new("date");
        date.arg("+%s").envs(clock.map(|library| ("LD_PRELOAD", library)));
        String::from_utf8(date.output().ok()?.stdout).ok()?.trim().parse().ok()
    };
    let jump = now(Some(&library))? - now(None)?;
    (jump.abs() > 1_000_000).then_some(library)
}

#[test]
fn a_jump_of_the_clock_changes_no_file() {
    let folder = folder("faults_clock");
    let Some(library) = jumping_clock(&folder) else {
        assert!(std::env::var_os("AUTOBATCH_REQUIRE_FAULTS").is_none(), "the clock cannot be replaced");
        return;
    };
    for (name, script) in writers().into_iter().filter(|(name, _)| !MEASURED.contains(name)) {
        let written = |clock: &str| {
            let path = format!("{folder}/{name}");
            let output = shell(&format!("{clock}{script}"), &path);
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{name}, {clock}: {printed}");
            std::fs::read(&path).expect("the verb wrote it")
        };
        let steady = written("");
        assert!(steady == written(&format!("LD_PRELOAD={library} ")), "{name} depends on the clock");
    }
}

/// Adds the sources below a folder that name the wall clock.
fn wall_clocks(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            wall_clocks(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source is text");
            if ["SystemTime", "UNIX_EPOCH", "Realtime"].iter().any(|name| text.contains(name)) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn a_jump_of_the_clock_changes_nothing_because_no_code_reads_the_wall_clock() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for part in
        ["src", "ir/src", "planner/src", "runtime-cpu/src", "nn/src", "models/src", "oracle/src", "cli/src"]
    {
        wall_clocks(&root.join(part), &mut found);
    }
    assert!(
        found.is_empty(),
        "times of training are monotonic, but these files read the wall clock: {found:?}"
    );
}
