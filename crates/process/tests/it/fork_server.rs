//! Python scripts that a fork server runs, beside the same scripts in processes of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tenterhook_process::{
    CancellationToken, Command, End, Finished, ForkServer, HeldPipe, Limits, Program, PythonScript,
    SpawnError,
};

use crate::support::{
    alive_in_group, eventually, group_is_gone, patient, pid_in, processes, run, within,
};

/// How long something may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the hooks of these tests read.
const EVENT: &[u8] = "{\"text\": \"grüße\",\n\"number\": 7}\n".as_bytes();

/// The interpreter itself: what is called `python3` may be a script that looks for it.
static PYTHON: LazyLock<String> = LazyLock::new(|| {
    let python = std::env::var("TENTERHOOK_INTERNAL__PYTHON").unwrap_or_else(|_| "python3".into());
    let output = std::process::Command::new(python)
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
});

/// A script and its fork server.
struct Hook {
    command: Command,
    server: ForkServer,
}

impl Hook {
    fn new(dir: &Path, words: &[&str]) -> Self {
        let words = [PYTHON.as_str()].into_iter().chain(words.iter().copied());
        let program = Program::exec(words);
        let server = ForkServer::new(PythonScript::of(&program).unwrap());
        let command = Command::new(program).working_dir(dir.to_owned());
        Self { command, server }
    }

    /// A script of this text, whose server is ready.
    async fn of(dir: &Path, text: &str) -> Self {
        fs::write(dir.join("hook.py"), text).unwrap();
        let hook = Self::new(dir, &["hook.py", "--fast", "ä b"]);
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

    /// Returns the process ids of the servers of this test.
    fn servers(&self) -> Vec<u32> {
        let own = std::process::id();
        let marker = self.command.clone();
        let _ = marker;
        processes()
            .into_iter()
            .filter(|process| process.parent == own && process.state != 'Z')
            .map(|process| process.pid)
            .collect()
    }
}

fn printed(finished: &Finished) -> String {
    finished.stdout.text().into_owned()
}

/// What of a run a caller sees.
fn seen(finished: &Finished) -> (End, String, String, bool) {
    (
        finished.end,
        without_addresses(&finished.stdout.text()),
        without_addresses(&finished.stderr.text()),
        finished.is_pipe_held,
    )
}

/// Leaves out where objects lie in memory.
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
