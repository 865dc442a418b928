# The worker that runs hooks written in Python. It uses the protocol of
# docs/reference/worker-protocol.md over standard input and output.
#
# Handlers that are plain functions run in the reading thread, which avoids a thread switch per
# event. If one takes long, another thread continues to read. Coroutines run in an event loop in a
# separate thread. Everything that handlers print goes to standard error.

import collections
import inspect
import json
import os
import sys
import threading
import time
import types

VERSION = 1
# How long an answer may be held back to be sent together with later answers, in seconds.
PATIENCE = 0.001
# The interval at which the worker checks for slow handlers, in seconds.
TICK = 0.01
# The number of checks without a call after which checking pauses until the next call.
MAX_IDLE = 50
# The maximum number of slow handlers at the same time.
MAX_SLOW = 64

# Parses the value that begins at a given position of a string. `json.loads` also guesses the encoding
# and looks for surrounding white space, which doubles the time.
value_at = json.JSONDecoder().scan_once
to_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

def module_of(name, source):
    """Creates a module from its source, which the host puts before this one."""
    module = types.ModuleType(name)
    # Dataclasses look up their module in `sys.modules` while they are created.
    sys.modules[name] = module
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


# The module `tenterhook`, which hooks import.
api = module_of("tenterhook", API)
api.__path__ = []


class Refused(Exception):
    """The reason why a call failed, which is reported to the host."""


class Cancelled(BaseException):
    """Raised in a handler whose answer the host no longer waits for."""


class Wire:
    """The two pipes of the protocol. Handlers see other pipes as standard input and output."""

    def __init__(self):
        self.incoming = os.dup(0)
        self.outgoing = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        # Output should appear when it is printed.
        sys.stdout.reconfigure(line_buffering=True)
        self.lock = threading.Lock()
        self.parts = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self):
        """Closes the pipes in a process that a handler has forked, so that it cannot send answers."""
        os.close(self.incoming)
        os.close(self.outgoing)
        self.outgoing = None
        self.lock = threading.Lock()

    def send(self, data):
        with self.lock:
            if self.outgoing is None:
                os._exit(0)
            while data:
                written = os.write(self.outgoing, data)
                data = data[written:]

    def read(self):
        """Returns the lines that have arrived, at least one. Returns an empty list if the host closed the pipe."""
        while True:
            chunk = os.read(self.incoming, 1 << 16)
            if not chunk:
                return []
            self.parts.append(chunk)
            if b"\n" not in chunk:
                continue
            lines = b"".join(self.parts).split(b"\n")
            self.parts = [lines.pop()]
            return lines


def leave():
    """Ends the worker and every process that handlers have started."""
    try:
        os.killpg(0, 9)
    finally:
        os._exit(0)


def watch(descriptor):
    """Ends the worker when the host has exited, whatever handlers are doing."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)
    while True:
        if any(flags & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, flags in poll.poll()):
            # The reader needs time to read what the host wrote before it exited.
            time.sleep(0.5)
            leave()


class Loop:
    """An event loop in a separate thread, started by the first coroutine."""

    def __init__(self):
        self.loop = None
        self.tasks = {}

    def start(self, number, coroutine, done):
        import asyncio

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()

        def finished(task):
            del self.tasks[number]
            done(task)

        def begin():
            task = self.tasks[number] = self.loop.create_task(coroutine)
            task.add_done_callback(finished)

        self.loop.call_soon_threadsafe(begin)

    def cancel(self, number):
        def cancel():
            task = self.tasks.get(number)
            if task is not None:
                task.cancel()

        if self.loop is not None:
            self.loop.call_soon_threadsafe(cancel)


def where(error, path):
    """Returns what went wrong, with the line of the script if it is known."""
    place = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            place = trace.tb_lineno
        trace = trace.tb_next
    reason = str(error)
    if isinstance(error, SyntaxError) and error.filename == path:
        # The text of the exception repeats the file and the line.
        place, reason = error.lineno, error.msg
    said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    name = os.path.basename(path)
    return f"{name}:{place}: {said}" if place else f"{name}: {said}"


def why(error, path, approved):
    """Returns why a script did not load. Names the files of the project instead of their approved copies."""
    text = where(error, path)
    if approved is None:
        return text
    if isinstance(error, ImportError):
        text += "; an approved script finds only installed packages and the files that its approval covers"
    return text.replace(approved["copies"], approved["project"])


class Own:
    """Tenterhook's own API, with the same functions as the modules of the other APIs."""

    @staticmethod
    def begin():
        api._hooks.clear()
        api._open.clear()

    @staticmethod
    def collect(_):
        return [{**hook, "prepare": api.Event, "judge": own_answer} for hook in api._take()]


def own_answer(_, effect):
    """Converts what a handler of Tenterhook's own API returned to the answer for the host."""
    if isinstance(effect, api.Effect):
        return {"effect": effect}
    if effect is None or isinstance(effect, dict):
        return effect
    kind = type(effect).__name__
    raise TypeError(f"the handler returned a {kind}, expected nothing or what a function such as `deny()` or `patch()` returns")


def api_of(kind):
    """Returns the module of an API. It is loaded with the first script that uses it."""
    if kind == "tenterhook":
        return Own
    source = APIS.get(kind)
    if source is None:
        known = "`, `".join(["tenterhook", *APIS])
        raise Refused(f"this worker has no API `{kind}`, expected one of `{known}`")
    name = f"tenterhook._{kind}"
    if name not in sys.modules:
        if "tenterhook._standins" not in sys.modules:
            module_of("tenterhook._standins", STAND_INS)
        module = module_of(name, source)
        module._check_loading = check_loading
        module._finder = module.stand_ins()
        module._finder.add_first()
    return sys.modules[name]


LATE = "hooks must be registered while the script loads, not in a thread, task or handler that runs later"

# The script that is being loaded, and the loaded scripts by their numbers.
loading = None
scripts = {}


def late_scripts():
    """Returns the loaded scripts that may be registering a hook too late, or None if the hook is in time."""
    frame = sys._getframe(1)
    while frame is not None:
        names = frame.f_globals
        if loading is not None and names is loading.names:
            return None
        if str(names.get("__name__")).startswith("tenterhook_script_"):
            # A script that was reloaded or removed is not in the list, and none of its hooks can
            # fail.
            return [script for script in list(scripts.values()) if script.names is names]
        frame = frame.f_back
    # Any of the scripts may have started the thread.
    return None if loading is not None else list(scripts.values())


def check_loading():
    """Raises if a hook is registered too late. The hooks of its script fail from then on, because one of them is missing."""
    late = late_scripts()
    if late is None:
        return
    for script in late:
        script.problem = f"{os.path.basename(script.path)} registered a hook too late: {LATE}"
    raise RuntimeError(LATE)


class Script:
    """One file and the hooks that it registers."""

    def __init__(self, number, path, kind, approved):
        global loading
        self.api = api_of(kind)
        self.path = path
        # If set, the reason why all its hooks fail.
        self.problem = None
        module = types.ModuleType(f"tenterhook_script_{number}")
        module.__file__ = path
        folder = os.path.dirname(path)
        try:
            with open(path, "rb") as file:
                code = compile(file.read(), path, "exec")
        except Exception as error:
            raise Refused(where(error, path)) from None
        self.api.begin()
        if folder not in sys.path:
            # At the end of the path, so that a script called `logging.py` does not replace the
            # module of that name for others.
            sys.path.append(folder)
        if self.api is not Own:
            self.api._finder.add_root(self.api.project_of(path))
        sys.modules[module.__name__] = module
        self.names = module.__dict__
        loading = self
        try:
            execute(code, self.names)
            self.hooks = self.api.collect(module)
            show_logs()
        except BaseException as error:
            getattr(self.api, "abandon", self.api.begin)()
            raise Refused(why(error, path, approved)) from None
        finally:
            loading = None

    def forget(self):
        """Removes what the script has registered, if its API keeps a registry."""
        forget = getattr(self.api, "forget", None)
        if forget:
            forget([hook["registered"] for hook in self.hooks])

    def described(self):
        keys = ("name", "event", "matcher", "priority")
        return [{key: hook[key] for key in keys} for hook in self.hooks]


def show_logs():
    """Shows what scripts log from the level INFO upwards, unless a script has configured logging itself."""
    logging = sys.modules.get("logging")
    if logging is not None and not logging.root.handlers and logging.root.level == logging.WARNING:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s", stream=sys.stderr)


def execute(code, names):
    """Runs the code of a script. Raises if a coroutine was never awaited, because what it would register is missing."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        exec(code, names)
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning) and "was never awaited" in str(warning.message):
            raise RuntimeError(f"{warning.message}, so the hooks that it registers are missing; run it with `asyncio.run(...)`")
        warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)


class Worker:
    def __init__(self):
        self.wire = Wire()
        self.loop = Loop()
        self.lock = threading.Lock()
        # Lines that were read and not yet handled, and answers that were not yet sent.
        self.lines = collections.deque()
        self.answers = []
        self.answered_at = 0.0
        # The number of the active reader, and its thread. If a handler takes long, another reader
        # takes over, and the first one only finishes its call.
        self.reader = 0
        self.thread = threading.get_ident()
        # The call that the active reader is in, and the slow calls of earlier readers with their
        # threads.
        self.call = None
        self.slow = {}
        # Whether the clock is running. Duplicates the state of `ticking`, because reading it is
        # cheaper.
        self.is_ticking = False
        self.ticking = threading.Event()
        for work, arguments in ((watch, (self.wire.incoming,)), (self.tick, ())):
            threading.Thread(target=work, args=arguments, daemon=True).start()

    def run(self):
        self.read(0)
        # Another thread is reading now.
        threading.Event().wait()

    def read(self, reader):
        """Handles incoming lines until another reader takes over."""
        self.thread = threading.get_ident()
        while True:
            while self.lines:
                line = self.lines.popleft()
                if line and not self.take_one(reader, line):
                    return
            if self.answers:
                self.flush()
            lines = self.wire.read()
            if not lines:
                leave()
            self.lines.extend(lines)

    def take_one(self, reader, line):
        """Handles one line. Returns whether this is still the active reader."""
        answer = self.take(line)
        ready = None
        if self.wire.outgoing is None:
            # The handler has forked, and this is the child process.
            os._exit(0)
        with self.lock:
            self.call = None
            if self.reader == reader:
                if answer is not None:
                    self.answers.append(answer)
                    if not self.lines:
                        ready, self.answers = self.answers, []
            else:
                reader = None
        if reader is None:
            self.leave_call(answer)
            return False
        if ready is not None:
            self.wire.send(b"".join(ready))
        elif answer is not None:
            now = time.perf_counter()
            if len(self.answers) == 1:
                self.answered_at = now
            elif now - self.answered_at > PATIENCE:
                self.flush()
        return True

    def flush(self):
        with self.lock:
            answers, self.answers = self.answers, []
        if answers:
            self.wire.send(b"".join(answers))

    def leave_call(self, answer):
        """Finishes a call whose thread is no longer the active reader."""
        me = threading.get_ident()
        while me in self.slow.values():
            try:
                with self.lock:
                    self.slow = {number: thread for number, thread in self.slow.items() if thread != me}
            except Cancelled:
                # The call has just finished.
                pass
        if answer is not None:
            self.wire.send(answer)

    def tick(self):
        """Lets another thread continue to read if a handler takes long."""
        seen, idle = None, 0
        while True:
            self.ticking.wait()
            time.sleep(TICK)
            call = self.call
            if call is not None and call == seen:
                self.take_over(call)
                call = None
            seen = call
            idle = 0 if self.call is not None else idle + 1
            if idle > MAX_IDLE:
                idle = 0
                self.ticking.clear()
                self.is_ticking = False
                if self.call is not None:
                    self.is_ticking = True
                    self.ticking.set()

    def take_over(self, call):
        with self.lock:
            if self.call != call or len(self.slow) >= MAX_SLOW:
                return
            self.call = None
            self.slow[call] = self.thread
            self.reader += 1
            reader = self.reader
        self.flush()
        threading.Thread(target=self.read, args=(reader,), daemon=True).start()

    def cancel(self, number):
        """Interrupts a handler that no one waits for. If it is blocked in native code, it ends when it returns from there."""
        self.loop.cancel(number)
        with self.lock:
            thread = self.slow.get(number)
            if thread is None:
                return
            import ctypes

            raised = ctypes.py_object(Cancelled)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)

    def take(self, line):
        message, _ = value_at(line.decode(), 0)
        method, number = message.get("method"), message.get("id")
        if method == "event/handle":
            # Set `call` first, or the clock could stop just before a handler that takes long.
            self.call = number
            if not self.is_ticking:
                self.is_ticking = True
                self.ticking.set()
            return self.handle(number, message["params"])
        if method == "$/cancel":
            self.cancel(message["params"]["id"])
            return None
        if number is None:
            return None
        if method == "shutdown":
            self.wire.send(answered(number, {}))
            leave()
        try:
            return answered(number, self.other(method, message.get("params") or {}))
        except Refused as error:
            return failed(number, str(error))

    def other(self, method, params):
        if method == "initialize":
            limit_memory(params.get("limits", {}).get("memory_bytes"))
            version = sys.version.split()[0]
            return {"protocol_version": VERSION, "worker": {"name": "python", "version": version}}
        if method == "script/load":
            number = params["script"]
            script = Script(number, params["path"], params["api"], params.get("approved"))
            self.unload(number)
            scripts[number] = script
            return {"hooks": script.described()}
        if method == "script/unload":
            self.unload(params["script"])
            return {}
        raise Refused(f"this worker has no method `{method}`")

    def unload(self, number):
        script = scripts.pop(number, None)
        if script is not None:
            script.forget()

    def handle(self, number, params):
        script = scripts.get(params["script"])
        if script is None or params["hook"] >= len(script.hooks):
            return failed(number, "unknown hook")
        if script.problem is not None:
            return failed(number, script.problem)
        hook = script.hooks[params["hook"]]
        try:
            subject = hook["prepare"](params["event"])
            value = hook["handler"](subject)
            if value is not None and inspect.isawaitable(value):
                self.await_one(number, script, hook, subject, value)
                return None
            return judged(number, hook["judge"](subject, value))
        except BaseException as error:
            return failed(number, where(error, script.path))

    def await_one(self, number, script, hook, subject, awaitable):
        async def wait():
            # Catch everything here, because a `SystemExit` would end the event loop.
            try:
                return judged(number, hook["judge"](subject, await awaitable))
            except BaseException as error:
                return failed(number, where(error, script.path))

        def done(task):
            self.wire.send(failed(number, "cancelled") if task.cancelled() else task.result())

        self.loop.start(number, wait(), done)


def judged(number, answer):
    """Returns the line that answers a call."""
    if answer is None:
        return b'{"jsonrpc":"2.0","id":%d,"result":null}\n' % number
    return answered(number, answer)


def answered(number, result):
    return b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (number, to_json(result).encode())


def failed(number, message):
    text = json.dumps({"code": -32000, "message": message})
    return b'{"jsonrpc":"2.0","id":%d,"error":%s}\n' % (number, text.encode())


def limit_memory(most):
    if not most:
        return
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or hard > most:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, ValueError, OSError):
        # Some systems do not support the limit.
        pass


api._check_loading = check_loading
Worker().run()
