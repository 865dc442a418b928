//! Python scripts that a fork server runs, compared with the same scripts in fresh processes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tenterhook_process::{
    CancellationToken, Command, End, Finished, ForkServer, HeldPipe, Limits, Program, PythonScript,
    SpawnError,
};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::support::{
    PATIENCE, eventually, file, group_is_gone, is_alone, patient, pid_in, processes, run, within,
};

/// The input of the hooks in these tests.
const EVENT: &[u8] = "{\"text\": \"grüße\",\n\"number\": 7}\n".as_bytes();

/// The path of the interpreter itself, because `python3` may be a wrapper script.
static PYTHON: LazyLock<String> = LazyLock::new(|| {
    let python = std::env::var("TENTERHOOK_INTERNAL__PYTHON").unwrap_or_else(|_| "python3".into());
    let output = std::process::Command::new(python)
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
});

/// Variables that change how the interpreter writes output and files.
const INTERPRETER_VARIABLES: [&str; 2] = ["PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"];

/// Limits how many tests have a server at the same time, because one process has at most eight.
static TURNS: Semaphore = Semaphore::const_new(4);

/// A script and its fork server.
struct Hook {
    command: Command,
    server: ForkServer,
    _turn: SemaphorePermit<'static>,
}

impl Hook {
    async fn new(dir: &Path, words: &[&str]) -> Self {
        let turn = TURNS.acquire().await.unwrap();
        let words = [PYTHON.as_str()].into_iter().chain(words.iter().copied());
        let program = Program::exec(words);
        let server = ForkServer::new(PythonScript::of(&program).unwrap()).fork_patience(PATIENCE);
        // Results must not depend on the environment in which the tests run.
        let command = Command::new(program)
            .working_dir(dir.to_owned())
            .without_env(&INTERPRETER_VARIABLES.map(OsString::from));
        Self {
            command,
            server,
            _turn: turn,
        }
    }

    /// Writes a script and waits until its server is ready.
    async fn of(dir: &Path, text: &str) -> Self {
        fs::write(dir.join("hook.py"), text).unwrap();
        let hook = Self::new(dir, &["hook.py", "--fast", "ä b"]).await;
        hook.warm().await;
        hook
    }

    async fn warm(&self) {
        self.server.warm(&self.command, PATIENCE).await.unwrap();
    }

    async fn any(&self, limits: &Limits) -> Result<Finished, SpawnError> {
        let cancel = CancellationToken::new();
        self.server.run(&self.command, EVENT, limits, &cancel).await
    }

    /// Runs the script, which must be forked.
    async fn fork_within(&self, limits: &Limits) -> Finished {
        let before = self.server.counts();
        let finished = self.any(limits).await.unwrap();
        let counts = self.server.counts();
        assert_eq!(counts.forked, before.forked + 1, "{counts:?}");
        assert_eq!(counts.cold, before.cold, "{counts:?}");
        finished
    }

    async fn fork(&self) -> Finished {
        self.fork_within(&patient()).await
    }

    /// Runs the script, which must not be forked.
    async fn cold(&self) -> Finished {
        let before = self.server.counts();
        let finished = self.any(&patient()).await.unwrap();
        let counts = self.server.counts();
        assert_eq!(counts.cold, before.cold + 1, "{counts:?}");
        assert_eq!(counts.forked, before.forked, "{counts:?}");
        finished
    }
}

/// Returns the process id of the server of a script in this folder.
fn server_in(dir: &Path) -> Option<u32> {
    let dir = dir.canonicalize().unwrap();
    let own = std::process::id();
    let mut servers = processes().into_iter().filter(|process| {
        let at = fs::read_link(format!("/proc/{}/cwd", process.pid));
        process.parent == own && process.state != 'Z' && at.is_ok_and(|at| at == dir)
    });
    servers.next().map(|process| process.pid)
}

/// Returns how many processes a server has forked and not reaped.
fn children_of(server: u32) -> usize {
    let all = processes().into_iter();
    all.filter(|process| process.parent == server).count()
}

fn signal(name: &str, pid: u32) {
    let sent = std::process::Command::new("/bin/kill")
        .args([name, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn printed(finished: &Finished) -> String {
    finished.stdout.text().into_owned()
}

/// The parts of a run that a caller sees.
fn seen(finished: &Finished) -> (End, String, String, bool) {
    (
        finished.end,
        without_addresses(&finished.stdout.text()),
        without_addresses(&finished.stderr.text()),
        finished.is_pipe_held,
    )
}

/// Removes memory addresses of objects.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split(" at 0x");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += " at";
        kept += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    kept
}

/// Scripts that must end and print in a forked child as they do in a fresh process.
const SAME: &[(&str, &str)] = &[
    ("does nothing", ""),
    ("prints", "print('hello')"),
    ("sys.exit without a status", "import sys; sys.exit()"),
    ("sys.exit with zero", "import sys; print('x'); sys.exit(0)"),
    (
        "sys.exit with two",
        "import sys; sys.stderr.write('no\\n'); sys.exit(2)",
    ),
    ("sys.exit with 256", "import sys; sys.exit(256)"),
    ("sys.exit with -1", "import sys; sys.exit(-1)"),
    (
        "sys.exit with a huge number",
        "import sys; sys.exit(1 << 33)",
    ),
    ("sys.exit with true", "import sys; sys.exit(True)"),
    ("sys.exit with a text", "import sys; sys.exit('not thät')"),
    ("sys.exit with a tuple", "import sys; sys.exit((1, 2))"),
    ("raise SystemExit", "raise SystemExit(3)"),
    ("exit", "exit(4)"),
    (
        "os._exit",
        "import os, sys; sys.stdout.write('lost'); os._exit(5)",
    ),
    (
        "an uncaught exception",
        "import json\ndef f():\n    return json.loads('{')\nf()\n",
    ),
    (
        "an exception with a cause",
        "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('grüße') from e",
    ),
    (
        "an exception group",
        "import sys\nif sys.version_info >= (3, 11):\n    raise ExceptionGroup('g', [ValueError(1)])",
    ),
    (
        "an exception in a function of a library",
        "import textwrap\ntextwrap.wrap('a b', width=-1)",
    ),
    (
        "an exception with an unprintable text",
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    ),
    (
        "a hook for exceptions",
        "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1/0",
    ),
    (
        "a broken hook for exceptions",
        "import sys\ndef hook(*a): raise KeyError('k')\nsys.excepthook = hook\n1/0",
    ),
    ("a failed assertion", "assert 1 == 2, 'no'"),
    (
        "a keyboard interrupt",
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)",
    ),
    (
        "death by a signal",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    ),
    (
        "death by SIGTERM",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nimport time; time.sleep(5)",
    ),
    ("an abort", "import os\nos.abort()"),
    ("a syntax error", "print('x')\ndef f(:\n  pass\n"),
    ("an indentation error", "if True:\nprint(1)\n"),
    ("a warning of the compiler", "x = 1\nprint(x is 1, '\\d')"),
    (
        "a deprecation warning",
        "import warnings\nwarnings.warn('old', DeprecationWarning)\nprint(1)",
    ),
    ("another encoding", "# -*- coding: latin-1 -*-\nprint('x')"),
    ("a module that is missing", "import no_such_module_anywhere"),
    (
        "a module that may be missing",
        "try:\n    import no_such_module\nexcept ImportError:\n    print('without')",
    ),
    (
        "sys.stdin.read",
        "import sys; print(repr(sys.stdin.read()))",
    ),
    (
        "sys.stdin line by line",
        "import sys\nfor line in sys.stdin: print(repr(line))",
    ),
    (
        "sys.stdin.buffer",
        "import sys; print(sys.stdin.buffer.read())",
    ),
    (
        "descriptor 0",
        "import os; print(os.read(0, 5), os.read(0, 100), os.read(0, 1))",
    ),
    ("open(0)", "print(open(0).read())"),
    ("/dev/stdin", "print(open('/dev/stdin').read())"),
    (
        "input",
        "print(input(), input())\ntry: input()\nexcept EOFError: print('end')",
    ),
    (
        "json.load",
        "import json, sys\nprint(json.dumps(json.load(sys.stdin)))",
    ),
    ("does not read", "print('deaf')"),
    (
        "closes stdin",
        "import sys; sys.stdin.close(); print('closed')",
    ),
    ("large output", "print('x' * 300000)"),
    (
        "output on both",
        "import sys\nfor i in range(3000): print(i); print(-i, file=sys.stderr)",
    ),
    (
        "bytes",
        "import sys; sys.stdout.buffer.write(b'\\xff\\x00')",
    ),
    (
        "descriptors",
        "import os; os.write(1, b'one'); os.write(2, b'two')",
    ),
    ("unicode", "print('grüße \\u2014 \\U0001f600')"),
    ("a lone surrogate", "print('\\ud800')"),
    (
        "streams",
        "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__):\n    print(s, s.encoding, s.errors, s.line_buffering, s.isatty(), s.seekable(), s.fileno(), s.buffer, getattr(s.buffer, 'raw', None))",
    ),
    (
        "closes stdout",
        "import sys; print('x'); sys.stdout.close()",
    ),
    ("closes descriptor 1", "import os; print('x'); os.close(1)"),
    (
        "no newline at the end",
        "import sys; sys.stdout.write('{}')",
    ),
    (
        "atexit",
        "import atexit\natexit.register(print, 'one'); atexit.register(print, 'two'); print('body')",
    ),
    (
        "atexit after an exception",
        "import atexit\natexit.register(print, 'bye'); 1/0",
    ),
    (
        "a failing atexit",
        "import atexit\ndef f(): raise ValueError('late')\natexit.register(f); print('body')",
    ),
    (
        "a thread that outlives the script",
        "import threading, time\ndef f():\n    time.sleep(0.05); print('late')\nthreading.Thread(target=f).start(); print('early')",
    ),
    (
        "a daemon thread",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start(); print('early')",
    ),
    (
        "a thread pool",
        "from concurrent.futures import ThreadPoolExecutor\np = ThreadPoolExecutor(2)\nprint(list(p.map(lambda x: x * 2, range(3))))",
    ),
    (
        "the main thread",
        "import threading\nprint(threading.current_thread().name, threading.main_thread() is threading.current_thread(), threading.active_count())",
    ),
    (
        "asyncio",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.01); return await (await asyncio.create_subprocess_exec('echo', 'hi')).wait()\nprint(asyncio.run(f()))",
    ),
    (
        "a file that is left open",
        "f = open('left.txt', 'w')\nf.write('all of it')\nimport atexit, os",
    ),
    (
        "reads that file",
        "f = open('left.txt', 'w')\nf.write('x')\ndel f\nprint(open('left.txt').read())",
    ),
    (
        "an object that ends last",
        "class C:\n    def __del__(self): print('gone')\nc = C()\nprint('body')",
    ),
    (
        "an object in a cycle",
        "class C:\n    def __del__(self): print('gone')\nc = C()\nc.c = c\nprint('body')",
    ),
    (
        "the main guard",
        "def main(): print('main')\nif __name__ == '__main__': main()",
    ),
    (
        "its own module",
        "import sys\nm = sys.modules['__main__']\nprint(sorted(vars(m)), m.__name__, m.__file__, m.__doc__, m.__package__, m.__spec__, type(m.__loader__), type(m.__builtins__), m.__loader__.name, m.__loader__.path)\nprint(list(globals())[:9])",
    ),
    ("a doc text", "'''about'''\nprint(__doc__)"),
    (
        "annotations",
        "x: int = 1\nprint(__annotations__ if '__annotations__' in dir() else None)",
    ),
    (
        "future annotations",
        "from __future__ import annotations\nimport typing\ndef f(x: undefined) -> None: pass\nprint(f.__annotations__)",
    ),
    (
        "arguments and paths",
        "import sys\nprint(sys.argv, sys.path, sys.flags, getattr(sys, 'orig_argv', 0), sys.executable, sys.prefix)",
    ),
    (
        "arguments for argparse",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--fast', action='store_true'); p.add_argument('what'); print(p.parse_args())",
    ),
    (
        "usage",
        "import argparse\nargparse.ArgumentParser().parse_args()",
    ),
    (
        "environment",
        "import os\nprint(sorted((k, v) for k, v in os.environ.items() if k != '_'))\nprint(sorted(k for k in os.environb if k != b'_'))",
    ),
    (
        "environment of a child",
        "import subprocess\nprint(sorted(subprocess.run(['env'], capture_output=True).stdout.decode().split('\\n')))",
    ),
    (
        "directory",
        "import os; print(os.getcwd(), os.environ.get('PWD'))",
    ),
    ("umask", "import os; print(os.umask(0))"),
    (
        "signals",
        "import signal\nfor s in sorted(signal.valid_signals()):\n    print(s, signal.getsignal(s))\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.set_wakeup_fd(-1))",
    ),
    (
        "the group",
        "import os; print(os.getpid() == os.getpgid(0), os.getsid(0))",
    ),
    (
        "open descriptors",
        "import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd')))",
    ),
    (
        "limits",
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_STACK))",
    ),
    (
        "garbage collection",
        "import gc; print(gc.isenabled(), gc.get_threshold(), gc.garbage)",
    ),
    (
        "recursion limit",
        "import sys; print(sys.getrecursionlimit())",
    ),
    (
        "locale",
        "import locale, sys\nprint(locale.setlocale(locale.LC_CTYPE), sys.getfilesystemencoding(), locale.getpreferredencoding())",
    ),
    (
        "a sibling module",
        "import sibling\nprint(sibling.VALUE, sibling.__file__)",
    ),
    (
        "a sibling package",
        "from package.inner import VALUE\nfrom package import inner\nprint(VALUE, inner.__name__)",
    ),
    ("a relative import", "from . import sibling"),
    (
        "a subprocess",
        "import subprocess\nprint(subprocess.run(['cat'], input=b'in', capture_output=True).stdout)\nsubprocess.run(['echo', 'direct'])",
    ),
    (
        "os.system",
        "import os\nprint(os.system('exit 3'), flush=True)",
    ),
    (
        "os.fork",
        "import os, sys\nsys.stdout.flush()\npid = os.fork()\nif pid == 0:\n    print('child'); sys.exit(4)\nprint(os.waitpid(pid, 0)[1] >> 8)",
    ),
    (
        "os.execv",
        "import os\nos.execv('/bin/echo', ['echo', 'replaced'])",
    ),
    (
        "multiprocessing",
        "import multiprocessing\ndef f(q): q.put('from child')\nif __name__ == '__main__':\n    c = multiprocessing.get_context('fork'); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)",
    ),
    (
        "multiprocessing by spawning",
        "import multiprocessing\ndef f(q): q.put('from child')\nif __name__ == '__main__':\n    c = multiprocessing.get_context('spawn'); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)",
    ),
    (
        "a pickle of its own class",
        "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))) is C)",
    ),
    (
        "a dataclass",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int\nprint(C(1))",
    ),
    (
        "a named tuple",
        "from collections import namedtuple\nprint(namedtuple('P', 'x')(1), namedtuple('P', 'x').__module__)",
    ),
    (
        "inspect",
        "import inspect\ndef f(): pass\nprint(inspect.getsource(f), inspect.getmodule(f))",
    ),
    (
        "logging",
        "import logging\nlogging.basicConfig(); logging.warning('careful'); print(logging.getLogger().handlers)",
    ),
    (
        "a printed traceback",
        "import traceback\ndef f(): 1/0\ntry: f()\nexcept Exception: traceback.print_exc()",
    ),
    (
        "a log of an exception",
        "import logging\ntry: 1/0\nexcept Exception: logging.exception('so')",
    ),
    (
        "an unraisable exception",
        "class C:\n    def __del__(self): raise ValueError('x')\nc = C()\ndel c\nprint(1)",
    ),
    (
        "compile flags",
        "from __future__ import annotations\nexec('x: y = 1')\nprint('ok')",
    ),
    (
        "xml",
        "import xml.etree.ElementTree as ET\nprint(ET.tostring(ET.fromstring('<a><b/></a>')))",
    ),
    (
        "sqlite",
        "import sqlite3\nc = sqlite3.connect(':memory:'); print(c.execute('select 1').fetchall())",
    ),
    (
        "a temporary folder",
        "import tempfile, os\nd = tempfile.TemporaryDirectory(); print(os.path.isdir(d.name))",
    ),
    (
        "a hash",
        "import hashlib, secrets\nprint(hashlib.sha256(b'x').hexdigest(), len(secrets.token_hex()))",
    ),
    (
        "stdout gone",
        "import os, sys\nsys.stdout = None; print('nowhere'); sys.exit('bye')",
    ),
    (
        "a replaced stdout",
        "import io, sys\nsys.stdout = io.StringIO(); print('nowhere')",
    ),
    (
        "sys.exit in a thread",
        "import threading, sys\nthreading.Thread(target=sys.exit, args=(3,)).start()",
    ),
    (
        "an exception in a thread",
        "import threading\ndef f(): raise ValueError('t')\nthreading.Thread(target=f).start()",
    ),
];

#[tokio::test]
async fn a_forked_child_is_like_a_fresh_process() {
    let mut differing = Vec::new();
    for (name, text) in SAME {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("sibling.py"), "VALUE = 5\n").unwrap();
        fs::create_dir(dir.path().join("package")).unwrap();
        fs::write(dir.path().join("package/__init__.py"), "").unwrap();
        fs::write(dir.path().join("package/inner.py"), "VALUE = 6\n").unwrap();
        let hook = Hook::of(dir.path(), text).await;
        let fresh = seen(&run(&hook.command, EVENT, &patient()).await);
        for _ in 0..2 {
            let forked = seen(&hook.fork().await);
            if forked != fresh {
                differing.push(format!("{name}:\n fresh {fresh:?}\nforked {forked:?}"));
                break;
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

#[tokio::test]
async fn flags_of_the_interpreter_mean_what_they_mean_to_a_fresh_process() {
    let table: &[&[&str]] = &[
        &["-I"],
        &["-E", "-s"],
        &["-S"],
        &["-B"],
        &["-OO"],
        &["-u"],
        &["-W", "error"],
        &["-X", "utf8=1"],
        &["-Xdev"],
    ];
    let text = "
import sys, json
assert True, 'x'
print(sys.flags, sys.path, sys.argv, sys.warnoptions, sys._xoptions, sys.dont_write_bytecode)
print(getattr(sys, 'orig_argv', 0), sys.stdout.write_through)
import warnings
warnings.warn('careful')
";
    for flags in table {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("hook.py"), text).unwrap();
        let words = [flags, &["./hook.py", "-c", "x"][..]].concat();
        let hook = Hook::new(dir.path(), &words).await;
        hook.warm().await;
        let fresh = seen(&run(&hook.command, EVENT, &patient()).await);
        assert_eq!(seen(&hook.fork().await), fresh, "{flags:?}");
    }
}

#[tokio::test]
async fn a_script_is_found_by_every_path_that_leads_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = "import sys, helper\nprint(__file__, sys.argv, sys.path[0], helper.__file__)\n1/0";
    fs::create_dir_all(dir.path().join("sub/deep")).unwrap();
    fs::write(dir.path().join("sub/hook.py"), text).unwrap();
    fs::write(dir.path().join("sub/helper.py"), "").unwrap();
    std::os::unix::fs::symlink("sub/hook.py", dir.path().join("link.py")).unwrap();
    let absolute = dir.path().join("sub/hook.py");
    for script in [
        "sub/hook.py",
        "./sub/hook.py",
        "sub/deep/../hook.py",
        "link.py",
        absolute.to_str().unwrap(),
    ] {
        let hook = Hook::new(dir.path(), &[script]).await;
        hook.warm().await;
        let fresh = seen(&run(&hook.command, EVENT, &patient()).await);
        assert_eq!(seen(&hook.fork().await), fresh, "{script}");
    }
}

#[tokio::test]
async fn a_script_that_never_ends_is_stopped_with_everything_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
import subprocess, time
subprocess.Popen(['sleep', '300'])
print('began', flush=True)
time.sleep(300)
";
    let hook = Hook::of(dir.path(), text).await;
    let limits = within(Duration::from_millis(500), PATIENCE);
    let finished = hook.fork_within(&limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: false });
    assert_eq!(printed(&finished), "began\n");
    group_is_gone(finished.pid).await;
    // The server still works.
    assert_eq!(hook.fork_within(&limits).await.end, finished.end);
}

#[tokio::test]
async fn a_script_that_will_not_end_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    time.sleep(300)
";
    let hook = Hook::of(dir.path(), text).await;
    let limits = within(Duration::from_millis(500), Duration::from_millis(50));
    let finished = hook.fork_within(&limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: true });
    group_is_gone(finished.pid).await;
}

/// A script that writes its process id to the file `pid` and then never ends.
const ENDLESS: &str = r"
import os, time
open('runs', 'a').write('run\n')
open('pid.new', 'w').write(f'{os.getpid()}\n')
os.rename('pid.new', 'pid')
os.close(1)
os.close(2)
time.sleep(300)
";

#[tokio::test]
async fn a_cancelled_and_a_dropped_run_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::of(dir.path(), ENDLESS).await;
    let pid_file = dir.path().join("pid");

    let cancel = CancellationToken::new();
    let limits = patient();
    let running = hook.server.run(&hook.command, EVENT, &limits, &cancel);
    let cancelling = async {
        let pid = pid_in(&pid_file).await;
        cancel.cancel();
        pid
    };
    let (finished, pid) = tokio::join!(running, cancelling);
    assert_eq!(finished.unwrap().end, End::Cancelled { killed: false });
    group_is_gone(pid).await;

    fs::remove_file(&pid_file).unwrap();
    let cancel = CancellationToken::new();
    let pid = tokio::select! {
        _ = hook.server.run(&hook.command, EVENT, &limits, &cancel) => None,
        pid = pid_in(&pid_file) => Some(pid),
    };
    group_is_gone(pid.unwrap()).await;

    cancel.cancel();
    let refused = hook.server.run(&hook.command, EVENT, &limits, &cancel);
    assert!(matches!(refused.await, Err(SpawnError::Cancelled)));
}

#[tokio::test]
async fn pipes_that_another_process_holds_are_waited_for_as_the_limits_say() {
    let dir = tempfile::tempdir().unwrap();
    let text = "import subprocess\nsubprocess.Popen(['sleep', '300'])\nprint('done')";
    let hook = Hook::of(dir.path(), text).await;
    let limits = Limits {
        held_pipe: HeldPipe::Drain(Duration::from_millis(100)),
        ..patient()
    };
    let finished = hook.fork_within(&limits).await;
    assert_eq!(finished.end, End::Exited(0));
    assert!(finished.is_pipe_held);
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn output_is_capped_and_input_of_any_size_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let text = "import sys\nprint(len(sys.stdin.buffer.read()))\nprint('x' * 5_000_000)";
    let hook = Hook::of(dir.path(), text).await;
    let input = vec![b'i'; 3_000_000];
    let (cancel, limits) = (CancellationToken::new(), patient());
    let running = hook.server.run(&hook.command, &input, &limits, &cancel);
    let finished = running.await.unwrap();
    assert!(finished.stdout.bytes.starts_with(b"3000000\nxxx"));
    assert_eq!(finished.stdout.bytes.len(), 1024 * 1024);
    assert!(finished.stdout.omitted > 3_000_000);

    let nothing = hook.server.run(&hook.command, b"", &limits, &cancel);
    assert!(nothing.await.unwrap().stdout.bytes.starts_with(b"0\n"));
    assert_eq!(hook.server.counts().cold, 0);
}

#[tokio::test]
async fn an_event_sees_nothing_of_the_events_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
import os, sys, json, builtins, signal
print(os.getcwd(), os.environ.get('LEFT'), json.loads is sys, hasattr(builtins, 'left'), os.umask(0o77))
print('sibling' in sys.modules, signal.getsignal(signal.SIGTERM), sys.argv, sys.path)
os.makedirs('inner', exist_ok=True)
os.chdir('inner')
os.environ['LEFT'] = '1'
json.loads = sys
builtins.left = 1
import sibling
sibling.VALUE = 9
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.argv.append('left')
sys.path.append('left')
";
    fs::write(dir.path().join("sibling.py"), "VALUE = 5\n").unwrap();
    let hook = Hook::of(dir.path(), text).await;
    let first = printed(&hook.fork().await);
    assert!(first.contains("None False False"), "{first}");
    for _ in 0..3 {
        assert_eq!(printed(&hook.fork().await), first);
    }
}

#[tokio::test]
async fn events_share_the_seed_of_hashes_and_nothing_else_that_is_random() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
import random, os, uuid, tempfile
print(hash('x'))
print(random.random())
print(uuid.uuid4())
print(os.urandom(8))
print(next(tempfile._get_candidate_names()))
";
    let hook = Hook::of(dir.path(), text).await;
    let (first, second) = (printed(&hook.fork().await), printed(&hook.fork().await));
    let pairs = first.lines().zip(second.lines());
    let is_same: Vec<_> = pairs.map(|(first, second)| first == second).collect();
    assert_eq!(is_same, [true, false, false, false, false]);
}

#[tokio::test]
async fn many_events_at_once_are_answered_each_with_its_own_answer() {
    let dir = tempfile::tempdir().unwrap();
    let text = "import sys\ntext = sys.stdin.read()\nprint(text * 2)";
    let hook = Hook::of(dir.path(), text).await;
    let hook = std::sync::Arc::new(hook);
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..40 {
        let hook = std::sync::Arc::clone(&hook);
        runs.spawn(async move {
            let input = format!("event {number};");
            let (cancel, limits) = (CancellationToken::new(), patient());
            let running = hook
                .server
                .run(&hook.command, input.as_bytes(), &limits, &cancel);
            assert_eq!(
                printed(&running.await.unwrap()),
                format!("{input}{input}\n")
            );
        });
    }
    runs.join_all().await;
    let counts = hook.server.counts();
    assert_eq!((counts.forked, counts.cold), (40, 0), "{counts:?}");
    // The server has reaped all of them; one child waits for the next event.
    let server = server_in(dir.path()).unwrap();
    eventually(|| (children_of(server) <= 1).then_some(())).await;
}

#[tokio::test]
async fn an_event_after_the_death_of_the_server_runs_without_it_and_a_new_one_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::of(dir.path(), "print('hello')").await;
    assert_eq!(printed(&hook.fork().await), "hello\n");
    let server = server_in(dir.path()).unwrap();
    signal("-9", server);
    eventually(|| server_in(dir.path()).is_none().then_some(())).await;
    assert_eq!(printed(&hook.cold().await), "hello\n");
    let counts = hook.server.counts();
    assert!(counts.problem.is_some(), "{counts:?}");
    while hook.server.counts().forked < 2 {
        assert_eq!(printed(&hook.any(&patient()).await.unwrap()), "hello\n");
    }
    assert_ne!(server_in(dir.path()), Some(server));
    assert_eq!(hook.server.counts().starts, 2);
}

#[tokio::test]
async fn a_run_that_loses_its_server_fails_and_is_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::of(dir.path(), ENDLESS).await;
    let server = server_in(dir.path()).unwrap();
    let killing = async {
        let pid = pid_in(&dir.path().join("pid")).await;
        signal("-9", server);
        pid
    };
    let limits = patient();
    let (lost, pid) = tokio::join!(hook.any(&limits), killing);
    assert!(matches!(lost, Err(SpawnError::Lost { .. })), "{lost:?}");
    group_is_gone(pid).await;
    let runs = fs::read_to_string(dir.path().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::of(dir.path(), ENDLESS).await;
    let server = server_in(dir.path()).unwrap();
    eventually(|| (children_of(server) == 1).then_some(())).await;
    signal("-STOP", server);
    let limits = within(Duration::from_millis(200), Duration::ZERO);
    // The child that was forked ahead needs no server to start, but only the server can report how
    // it ended.
    let first = hook.any(&limits).await;
    assert!(
        matches!(
            first,
            Ok(Finished {
                end: End::TimedOut { .. },
                ..
            })
        ),
        "{first:?}"
    );
    fs::write(dir.path().join("hook.py"), "print('hello')").unwrap();
    assert_eq!(printed(&hook.cold().await), "hello\n");
    // A server that is given up is killed; it does not have to cooperate.
    eventually(|| (server_in(dir.path()) != Some(server)).then_some(())).await;
}

/// Returns how often a process has gone to sleep.
fn sleeps_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_fork_that_takes_too_long_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut hook = Hook::of(dir.path(), "print('hello')").await;
    let server = server_in(dir.path()).unwrap();
    eventually(|| (children_of(server) == 1).then_some(())).await;
    let all = processes().into_iter();
    let idle = all
        .filter(|process| process.parent == server)
        .map(|process| process.pid);
    let idle = idle.collect::<Vec<_>>()[0];
    let before = sleeps_of(server);
    signal("-9", idle);
    eventually(|| {
        let all = processes().into_iter();
        let mut ended = all.filter(|process| process.pid == idle && process.state == 'Z');
        ended.next().map(drop)
    })
    .await;
    // The server must know that its child has ended before it is stopped.
    eventually(|| (sleeps_of(server) > before).then_some(())).await;
    signal("-STOP", server);
    hook.server = hook.server.fork_patience(Duration::from_millis(100));
    assert_eq!(printed(&hook.cold().await), "hello\n");
    eventually(|| (server_in(dir.path()) != Some(server)).then_some(())).await;
}

#[tokio::test]
async fn an_edited_script_is_the_one_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::of(dir.path(), "print('first')").await;
    assert_eq!(printed(&hook.fork().await), "first\n");
    fs::write(dir.path().join("hook.py"), "import json\nprint('second')").unwrap();
    assert_eq!(printed(&hook.cold().await), "second\n");
    while hook.server.counts().forked < 2 {
        assert_eq!(printed(&hook.any(&patient()).await.unwrap()), "second\n");
    }
    // Replaced by a file of the same size, as editors do.
    fs::write(dir.path().join("new.py"), "import json\nprint('sec0nd')").unwrap();
    fs::rename(dir.path().join("new.py"), dir.path().join("hook.py")).unwrap();
    assert_eq!(printed(&hook.any(&patient()).await.unwrap()), "sec0nd\n");
    // Deleted: the interpreter itself reports that.
    fs::remove_file(dir.path().join("hook.py")).unwrap();
    assert_eq!(hook.cold().await.end, End::Exited(2));
}

/// Makes the folder of installed modules below `base`, with these in it.
fn install(base: &Path, modules: &[(&str, &str)]) -> PathBuf {
    let output = std::process::Command::new(PYTHON.as_str())
        .args(["-c", "import site; print(site.getusersitepackages())"])
        .env("PYTHONUSERBASE", base)
        .output()
        .unwrap();
    let site = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    fs::create_dir_all(&site).unwrap();
    for (name, text) in modules {
        fs::write(site.join(name), text).unwrap();
    }
    site
}

#[tokio::test]
async fn an_edited_module_is_the_one_that_runs() {
    let module = |value: &str| format!("import os\nPID = os.getpid()\nVALUE = '{value}'\n");
    let dir = tempfile::tempdir().unwrap();
    let (base, work) = (dir.path().join("base"), dir.path().join("work"));
    let site = install(&base, &[("installed.py", &module("first"))]);
    fs::create_dir(&work).unwrap();
    let text = "import installed, os\nprint(installed.PID != os.getpid(), installed.VALUE)";
    fs::write(work.join("hook.py"), text).unwrap();
    let mut hook = Hook::new(&work, &["hook.py"]).await;
    hook.command = hook.command.env("PYTHONUSERBASE", &base);
    hook.warm().await;
    assert_eq!(printed(&hook.fork().await), "True first\n");
    fs::write(site.join("installed.py"), module("changed")).unwrap();
    assert_eq!(printed(&hook.cold().await), "False changed\n");
    while hook.server.counts().forked < 2 {
        let again = printed(&hook.any(&patient()).await.unwrap());
        assert!(again.ends_with("changed\n"), "{again}");
    }
}

#[tokio::test]
async fn a_new_file_beside_the_script_takes_the_place_of_a_module() {
    let dir = tempfile::tempdir().unwrap();
    let text = "import json\nprint(hasattr(json, 'HERE'))";
    let hook = Hook::of(dir.path(), text).await;
    assert_eq!(printed(&hook.fork().await), "False\n");
    // Any other file changes nothing.
    fs::write(dir.path().join("hook.log"), "").unwrap();
    assert_eq!(printed(&hook.fork().await), "False\n");
    fs::write(dir.path().join("json.py"), "HERE = 1").unwrap();
    assert_eq!(printed(&hook.cold().await), "True\n");
    let before = hook.server.counts().forked;
    // The new server does not load modules that are next to the script.
    while hook.server.counts().forked == before {
        assert_eq!(printed(&hook.any(&patient()).await.unwrap()), "True\n");
    }
}

#[tokio::test]
async fn what_a_fork_cannot_reproduce_runs_in_a_fresh_process() {
    let thread = "
import threading, time
threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
";
    let modules = [("prints.py", "print('hi')"), ("threads.py", thread)];
    let table = [
        ("print(1)\n\0", "the script is not Python source text"),
        (
            "import prints",
            "a module that the script imports prints while it is imported",
        ),
        (
            "import threads",
            "a module that the script imports starts a thread while it is imported",
        ),
        (
            "import logging.config",
            "`string` next to the script has the name of a Python module",
        ),
    ];
    for (text, expected) in table {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("base");
        install(&base, &modules);
        fs::write(dir.path().join("hook.py"), text).unwrap();
        if expected.contains("string") {
            fs::write(dir.path().join("string.py"), "print('mine')").unwrap();
        }
        let mut hook = Hook::new(dir.path(), &["hook.py"]).await;
        hook.command = hook.command.env("PYTHONUSERBASE", &base);
        let refused = hook.server.warm(&hook.command, PATIENCE).await;
        assert_eq!(refused.unwrap_err(), expected);
        let fresh = seen(&run(&hook.command, EVENT, &patient()).await);
        assert_eq!(seen(&hook.cold().await), fresh);
    }
}

#[tokio::test]
async fn a_missing_script_and_a_missing_interpreter_fail_as_they_do_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::new(dir.path(), &["missing.py"]).await;
    let refused = hook.server.warm(&hook.command, PATIENCE).await.unwrap_err();
    assert!(refused.starts_with("cannot read the script"), "{refused}");
    let fresh = seen(&run(&hook.command, EVENT, &patient()).await);
    assert_eq!(seen(&hook.cold().await), fresh);
    assert_eq!(fresh.0, End::Exited(2));

    let program = Program::exec(["/nowhere/python3", "hook.py"]);
    let server = ForkServer::new(PythonScript::of(&program).unwrap());
    let command = Command::new(program);
    let (cancel, limits) = (CancellationToken::new(), patient());
    let error = server.run(&command, EVENT, &limits, &cancel).await;
    assert!(matches!(error, Err(SpawnError::Resolve(_))), "{error:?}");
}

#[tokio::test]
async fn an_interpreter_that_fails_is_not_started_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = "#!/bin/sh\necho no such version >&2; exit 3\n";
    let fake = file(dir.path(), "python3", text, 0o755);
    fs::write(dir.path().join("hook.py"), "print(1)").unwrap();
    let program = Program::exec([fake.to_str().unwrap(), "hook.py"]);
    let server = ForkServer::new(PythonScript::of(&program).unwrap());
    let command = Command::new(program).working_dir(dir.path().to_owned());
    let refused = server.warm(&command, PATIENCE).await.unwrap_err();
    assert_eq!(
        refused,
        "the server ended before it was ready: no such version"
    );
    let (cancel, limits) = (CancellationToken::new(), patient());
    let began = Instant::now();
    let mut runs = 0;
    while began.elapsed() < Duration::from_millis(600) {
        let finished = server.run(&command, EVENT, &limits, &cancel).await.unwrap();
        assert_eq!(finished.end, End::Exited(3));
        runs += 1;
    }
    let counts = server.counts();
    assert!(counts.starts <= 3, "{counts:?}");
    assert_eq!((counts.cold, counts.forked), (runs, 0));
}

#[tokio::test]
async fn another_environment_is_another_server() {
    let dir = tempfile::tempdir().unwrap();
    let text = "import os\nprint(os.environ.get('LEVEL'))";
    let mut hook = Hook::of(dir.path(), text).await;
    assert_eq!(printed(&hook.fork().await), "None\n");
    hook.command = hook.command.env("LEVEL", "3");
    while hook.server.counts().forked < 2 {
        assert_eq!(printed(&hook.any(&patient()).await.unwrap()), "3\n");
    }
}

#[tokio::test]
async fn one_server_serves_every_directory_when_the_script_is_absolute() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("hook.py");
    fs::write(
        &script,
        "import os\nprint(os.getcwd(), os.environ.get('PWD'))",
    )
    .unwrap();
    let hook = Hook::new(dir.path(), &[script.to_str().unwrap()]).await;
    hook.warm().await;
    let (cancel, limits) = (CancellationToken::new(), patient());
    for name in ["one", "two"] {
        let place = dir.path().join(name);
        fs::create_dir(&place).unwrap();
        let command = hook.command.placed(&place);
        let finished = hook.server.run(&command, EVENT, &limits, &cancel).await;
        let fresh = run(&command, EVENT, &limits).await;
        assert_eq!(seen(&finished.unwrap()), seen(&fresh));
    }
    let counts = hook.server.counts();
    assert_eq!((counts.forked, counts.starts), (2, 1), "{counts:?}");

    let gone = hook.command.placed(&dir.path().join("gone"));
    let error = hook.server.run(&gone, EVENT, &limits, &cancel).await;
    assert!(matches!(error, Err(SpawnError::Resolve(_))), "{error:?}");
}

#[tokio::test]
async fn a_server_ends_with_its_last_user() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::of(dir.path(), "print(1)").await;
    let server = server_in(dir.path()).unwrap();
    hook.fork().await;
    drop(hook);
    let is_known = || processes().iter().any(|process| process.pid == server);
    eventually(|| (!is_known()).then_some(())).await;
    // So does the child that waited for the next event.
    group_is_gone(server).await;
}

#[tokio::test]
async fn a_server_ends_when_its_parent_dies() {
    const DIR: &str = "TENTERHOOK_INTERNAL__DIR";
    if let Some(dir) = std::env::var_os(DIR) {
        let dir = Path::new(&dir);
        let _hook = Hook::of(dir, "print(1)").await;
        fs::write(dir.join("pid"), format!("{}\n", server_in(dir).unwrap())).unwrap();
        signal("-9", std::process::id());
    }
    let dir = tempfile::tempdir().unwrap();
    let test = "fork_server::a_server_ends_when_its_parent_dies";
    let died = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    assert!(!died.status.success());
    let server = pid_in(&dir.path().join("pid")).await;
    group_is_gone(server).await;
}

#[tokio::test]
async fn one_process_has_eight_servers_at_most() {
    if !is_alone("fork_server::one_process_has_eight_servers_at_most", 1024) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("hook.py");
    fs::write(&script, "print(1)").unwrap();
    let program = Program::exec([PYTHON.as_str(), script.to_str().unwrap()]);
    let command = Command::new(program.clone());
    let server = || ForkServer::new(PythonScript::of(&program).unwrap());
    let servers: Vec<_> = (0..8).map(|_| server()).collect();
    for server in &servers {
        server.warm(&command, PATIENCE).await.unwrap();
    }
    let ninth = server();
    let refused = ninth.warm(&command, PATIENCE).await;
    assert_eq!(refused.unwrap_err(), "8 fork servers are already running");
    let (cancel, limits) = (CancellationToken::new(), patient());
    let finished = ninth.run(&command, EVENT, &limits, &cancel).await.unwrap();
    assert_eq!(printed(&finished), "1\n");
    assert_eq!(ninth.counts().cold, 1);
}

#[tokio::test]
async fn only_imports_that_nothing_before_them_can_change_are_made_ahead() {
    let table = [
        ("import one, two", "one two"),
        (
            "'about'\nfrom __future__ import annotations\nLEVEL = 3\nimport one",
            "one",
        ),
        (
            "try:\n    import one\nexcept ImportError:\n    one = 1\nimport two",
            "one two",
        ),
        ("from one import PID\nfrom two import *", "one two"),
        ("if True:\n    import one\nimport two", "two"),
        ("def f():\n    import one\nimport two\nf()", "two"),
        ("import sys\nsys.path.insert(0, 'vendored')\nimport one", ""),
        ("import one, os\nos.environ['A'] = '1'\nimport two", "one"),
        ("if True:\n    print('x')\nimport one", ""),
        ("import sibling\nimport one", ""),
        (
            "try:\n    import no_such_module\nexcept ImportError:\n    pass\nimport one",
            "",
        ),
        ("with open('hook.py'):\n    import one", ""),
        ("@print\ndef f(): pass\nimport one", ""),
        ("class C:\n    print('x')\nimport one", ""),
    ];
    let module = "import os\nPID = os.getpid()";
    let end = "
import os, sys
ahead = [m for m in ('one', 'two') if m in sys.modules and sys.modules[m].PID != os.getpid()]
print(*ahead, file=sys.stderr)
";
    for (imports, expected) in table {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("base");
        install(&base, &[("one.py", module), ("two.py", module)]);
        fs::create_dir(dir.path().join("vendored")).unwrap();
        fs::write(dir.path().join("vendored/one.py"), module).unwrap();
        fs::write(dir.path().join("sibling.py"), "").unwrap();
        fs::write(dir.path().join("hook.py"), format!("{imports}\n{end}")).unwrap();
        let mut hook = Hook::new(dir.path(), &["hook.py"]).await;
        hook.command = hook.command.env("PYTHONUSERBASE", &base);
        // The bytecode of the fresh process would change a folder, and the server would be outdated.
        hook.command = hook.command.env("PYTHONDONTWRITEBYTECODE", "1");
        hook.warm().await;
        let fresh = run(&hook.command, EVENT, &patient()).await;
        let forked = hook.fork().await;
        let (_, printed, ahead, _) = seen(&forked);
        assert_eq!(printed, seen(&fresh).1, "{imports}");
        assert_eq!(ahead.trim_end(), expected, "{imports}");
    }
}
