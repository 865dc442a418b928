# The worker that runs hooks written in Python. It speaks the protocol of docs/worker-protocol.md over standard input and output.
#
# Handlers that are plain functions run here, one after another, so that they cost no switch of threads. Coroutines run in an event
# loop of a thread of their own. What handlers print goes to standard error.

import inspect
import json
import os
import sys
import threading
import time
import types

VERSION = 1
# How long an answer may wait for those behind it, in seconds.
PATIENCE = 0.001

# The module `tenterhook`, whose source stands before this one, as those of the other APIs do.
api = types.ModuleType("tenterhook")
api.__path__ = []
exec(compile(API, "<tenterhook>", "exec"), api.__dict__)
sys.modules["tenterhook"] = api


class Refused(Exception):
    """Says to the host why a call failed."""


class Wire:
    """The two pipes of the protocol, apart from what handlers see as standard input and output."""

    def __init__(self):
        self.incoming = os.dup(0)
        self.outgoing = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self.lock = threading.Lock()

    def send(self, data):
        with self.lock:
            while data:
                written = os.write(self.outgoing, data)
                data = data[written:]

    def lines(self):
        """Returns the lines that came, some at once, until the host closes the pipe."""
        parts = []
        while True:
            chunk = os.read(self.incoming, 1 << 16)
            if not chunk:
                return
            parts.append(chunk)
            if b"\n" not in chunk:
                continue
            lines = b"".join(parts).split(b"\n")
            parts = [lines.pop()]
            yield lines


def leave():
    """Ends the worker and everything that handlers have started."""
    try:
        os.killpg(0, 9)
    finally:
        os._exit(0)


def watch(descriptor):
    """Ends the worker when the host is gone, whatever a handler does at that time."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)
    while True:
        if any(flags & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, flags in poll.poll()):
            # What was written before is read first.
            time.sleep(0.5)
            leave()


class Loop:
    """An event loop in a thread of its own, started with the first coroutine."""

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
    """Says what went wrong, and on which line of the script where that is known."""
    place = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            place = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == path:
        place = error.lineno
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    name = os.path.basename(path)
    return f"{name}:{place}: {said}" if place else f"{name}: {said}"


class Own:
    """Our own API, in the form that the modules of the other APIs have."""

    @staticmethod
    def begin():
        api._hooks.clear()

    @staticmethod
    def collect(_):
        hooks = [{**hook, "prepare": api.Event, "judge": own_answer} for hook in api._hooks]
        api._hooks.clear()
        return hooks


def own_answer(_, effect):
    """Returns what the host is told of what a handler of our own API returned."""
    if isinstance(effect, api.Effect):
        return {"effect": effect}
    if effect is None or isinstance(effect, dict):
        return effect
    kind = type(effect).__name__
    raise TypeError(f"the handler returned a {kind}, expected nothing or what `deny()`, `patch()` and the like return")


def api_of(kind):
    """Returns the module of an API, which is loaded with the first script that is written for it."""
    if kind == "tenterhook":
        return Own
    source = APIS.get(kind)
    if source is None:
        known = "`, `".join(["tenterhook", *APIS])
        raise Refused(f"this worker has no API `{kind}`, expected one of `{known}`")
    name = f"tenterhook._{kind}"
    if name not in sys.modules:
        module = types.ModuleType(name)
        # Classes of data look for their module while they are made.
        sys.modules[name] = module
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return sys.modules[name]


class Script:
    """One file, and the hooks that it registers."""

    def __init__(self, number, path, kind):
        self.api = api_of(kind)
        self.path = path
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
            # Behind what is installed: a script that is called `logging.py` is not what others import by that name.
            sys.path.append(folder)
        sys.modules[module.__name__] = module
        try:
            exec(code, module.__dict__)
            self.hooks = self.api.collect(module)
        except BaseException as error:
            getattr(self.api, "abandon", self.api.begin)()
            raise Refused(where(error, path)) from None

    def forget(self):
        """Takes back what the script has registered, where its API remembers that."""
        forget = getattr(self.api, "forget", None)
        if forget:
            forget([hook["registered"] for hook in self.hooks])

    def described(self):
        keys = ("name", "event", "matcher", "priority")
        return [{key: hook[key] for key in keys} for hook in self.hooks]


class Worker:
    def __init__(self):
        self.wire = Wire()
        self.scripts = {}
        self.loop = Loop()
        threading.Thread(target=watch, args=(self.wire.incoming,), daemon=True).start()

    def run(self):
        for lines in self.wire.lines():
            answers = []
            first = None
            for line in lines:
                if not line:
                    continue
                answer = self.take(line)
                if answer is None:
                    continue
                answers.append(answer)
                now = time.perf_counter()
                first = first or now
                if now - first > PATIENCE:
                    self.wire.send(b"".join(answers))
                    answers, first = [], None
            if answers:
                self.wire.send(b"".join(answers))
        leave()

    def take(self, line):
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "event/handle":
            return self.handle(number, message["params"])
        if method == "$/cancel":
            self.loop.cancel(message["params"]["id"])
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
            script = Script(number, params["path"], params["api"])
            self.unload(number)
            self.scripts[number] = script
            return {"hooks": script.described()}
        if method == "script/unload":
            self.unload(params["script"])
            return {}
        raise Refused(f"this worker has no method `{method}`")

    def unload(self, number):
        script = self.scripts.pop(number, None)
        if script is not None:
            script.forget()

    def handle(self, number, params):
        script = self.scripts.get(params["script"])
        if script is None or params["hook"] >= len(script.hooks):
            return failed(number, "there is no such hook")
        hook = script.hooks[params["hook"]]
        try:
            subject = hook["prepare"](params["event"])
            value = hook["handler"](subject)
            if inspect.isawaitable(value):
                self.await_one(number, script, hook, subject, value)
                return None
            return judged(number, hook["judge"](subject, value))
        except BaseException as error:
            return failed(number, where(error, script.path))

    def await_one(self, number, script, hook, subject, awaitable):
        async def wait():
            # What is raised is looked at here: the loop would end with a `SystemExit`.
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
    text = json.dumps(result, separators=(",", ":"), allow_nan=False)
    return b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (number, text.encode())


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
        # A system without the limit goes without.
        pass


Worker().run()
