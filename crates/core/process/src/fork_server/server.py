# The Python side of a fork server: loads the modules that a script imports, compiles the script, and forks a child
# for each run.
#
# Started as `python3 FLAGS -c THIS SCRIPT ARGS...` with a stream socket as standard input. The server writes one
# report to that socket. After that, each byte that it receives carries the socket of one run. On the socket of a run:
#
#   server -> engine   the process id of the child, four bytes
#   engine -> child    standard input, output and error as descriptors, and where to run
#   server -> engine   how the child ended: `E` or `S` and four bytes, the exit status or the signal
#   engine closes it   the child is reaped; until then, its process id cannot be reused
#
# The script's own code never runs in the server. Where possible, this file uses only modules that are written in C,
# so that a script finds as few additional modules imported as possible.

import sys

STARTED_WITH = set(sys.modules)

import os
import gc
import select
import _imp
import _signal
import _socket
import _weakref
import _frozen_importlib_external as _machinery

ONLY_AST = 0x400
CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
WORD = 4


class Refused(Exception):
    """Why a fork server cannot run this script. The script then runs in a fresh process."""


def number(value):
    return value.to_bytes(WORD, "little")


# -- Loading the script ---------------------------------------------------------------------------------------


class Script:
    def __init__(self, argv):
        self.argv = argv
        # Since 3.9, the interpreter makes the path of a script absolute, without normalizing it.
        written = argv[0]
        is_made_absolute = sys.version_info >= (3, 9)
        self.file = os.path.join(os.getcwd(), written) if is_made_absolute else written
        self.home = os.path.dirname(os.path.realpath(argv[0]))
        try:
            # `stat` comes before reading, so that a change between the two is noticed later.
            self.stat = os.stat(self.file)
            with open(self.file, "rb") as file:
                self.source = file.read()
        except OSError as error:
            raise Refused("cannot read the script: %s" % error)
        if b"\0" in self.source:
            raise Refused("the script is not Python source text")
        self.code = self.compile()

    def compile(self):
        """Compiles silently. If there are warnings or errors, each child compiles the script again and shows them."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return compile(self.source, self.file, "exec", 0, True)
            except Exception:
                return None

    def imports(self):
        """Returns the modules that the script imports at its start, each with the names that it imports from it."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = compile(self.source, self.file, "exec", ONLY_AST, True)
            except Exception:
                return []
        found = []
        collect(tree.body, found)
        return found


def collect(statements, found):
    """Collects imports until a statement that could change the meaning of a later import.

    For example, after `sys.path.insert(...)` or `os.environ[...] = ...`, an import may find another module than here.
    Returns whether the end was reached.
    """
    for statement in statements:
        kind = type(statement).__name__
        if kind == "Import":
            found.extend((alias.name, ()) for alias in statement.names)
        elif kind == "ImportFrom" and statement.module == "__future__":
            continue
        elif kind == "ImportFrom" and not statement.level:
            found.append((statement.module, tuple(alias.name for alias in statement.names)))
        elif kind == "Try" and not statement.orelse and not statement.finalbody:
            # The handlers do not run if the imports succeed. If an import fails, no further module is loaded.
            if not collect(statement.body, found):
                return False
        elif not is_inert(statement, kind):
            return False
    return True


def is_inert(statement, kind):
    """Returns whether a statement cannot affect the imports after it."""
    if kind == "If":
        # Such as `if TYPE_CHECKING`. The script itself does these imports.
        return all(type(inner).__name__ in ("Import", "ImportFrom") for inner in statement.body + statement.orelse)
    if kind in ("FunctionDef", "AsyncFunctionDef"):
        return not statement.decorator_list
    if kind == "Assign":
        targets = all(type(target).__name__ == "Name" for target in statement.targets)
        return targets and type(statement.value).__name__ == "Constant"
    return kind == "Expr" and type(statement.value).__name__ == "Constant"


def site_folders():
    site = sys.modules.get("site")
    folders = []
    if site is not None:
        folders.extend(getattr(site, "getsitepackages", list)())
        folders.append(getattr(site, "USER_SITE", None))
    return [os.path.join(folder, "") for folder in folders if folder]


class Library:
    """The folders from which modules are loaded ahead of time: the standard library and installed packages."""

    def __init__(self):
        self.standard = os.path.join(os.path.dirname(os.__file__), "")
        self.site = tuple(site_folders())

    def is_installed(self, path):
        return path.startswith(self.site)

    def is_standard(self, path):
        return path.startswith(self.standard) and not self.is_installed(path)

    def has(self, name):
        """Returns whether the top-level module of this name may be loaded ahead of time."""
        if name in ("__main__", "antigravity", "this"):
            return False
        if name in sys.modules or name in sys.builtin_module_names or _imp.is_frozen(name):
            return True
        try:
            spec = _machinery.PathFinder.find_spec(name)
        except Exception:
            return False
        if spec is None or not spec.has_location or not spec.origin:
            return False
        return self.is_standard(spec.origin) or self.is_installed(spec.origin)


def siblings(home):
    """Returns the names of the modules in the folder of the script, where an import looks first."""
    names = set()
    suffixes = (".py", ".pyc") + tuple(_imp.extension_suffixes())
    try:
        entries = os.listdir(home)
    except OSError:
        return names
    for entry in entries:
        stem = entry.split(".", 1)[0]
        if entry.endswith(suffixes) or os.path.isfile(os.path.join(home, entry, "__init__.py")):
            names.add(stem)
    return names


def preload(script, library, hidden):
    """Imports the modules of the script, up to the first one that only the script may import."""
    for name, names in script.imports():
        top = name.split(".", 1)[0]
        if top in hidden or not library.has(top):
            return
        try:
            __import__(name, {"__name__": "__main__"}, {}, [n for n in names if n != "*"])
        except Exception:
            # The script will get the same error in its own process.
            return


def check(printed):
    """Refuses modules that print or start threads, because a forked child would differ from a fresh process."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.set_blocking(printed, False)
    try:
        if os.read(printed, 1):
            raise Refused("a module that the script imports prints while it is imported")
    except BlockingIOError:
        pass
    try:
        threads = len(os.listdir("/proc/self/task"))
    except OSError:
        import _thread

        threads = _thread._count() + 1
    if threads != 1:
        raise Refused("a module that the script imports starts a thread while it is imported")


def load(argv):
    if sys.version_info < (3, 8):
        raise Refused("Python %d.%d is too old, expected 3.8 or newer" % sys.version_info[:2])
    if not hasattr(os, "waitid"):
        raise Refused("this Python has no `os.waitid`")
    script = Script(argv)
    library = Library()
    is_safe = getattr(sys.flags, "safe_path", False) or sys.flags.isolated
    hidden = set() if is_safe else siblings(script.home)
    reader, writer = os.pipe()
    for descriptor in (1, 2):
        os.dup2(writer, descriptor)
    os.close(writer)
    preload(script, library, hidden)
    check(reader)
    os.close(reader)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    names = {name.split(".", 1)[0] for name in list(sys.modules) if name not in STARTED_WITH}
    shadowed = sorted(names & hidden)
    if shadowed:
        raise Refused("`%s` next to the script has the name of a Python module" % shadowed[0])
    return script, report(script, library, names, is_safe)


def report(script, library, names, is_safe):
    """Lists the files and folders that the engine checks before each run. If one changes, this server is outdated."""
    fields = [b"ready"]

    def watch(kind, path, stat=None):
        try:
            stat = stat or os.stat(path)
        except OSError:
            return
        for value in (kind, path, stat.st_ino, stat.st_size, stat.st_mtime_ns):
            fields.append(os.fsencode(str(value)))

    watch("file", os.path.join(os.getcwd(), script.file), script.stat)
    if sys.executable:
        watch("file", sys.executable)
    folders, homes = set(), set() if is_safe else {script.home}
    for path in filter(None, sys.path):
        is_library = library.is_standard(os.path.join(path, "")) or library.is_installed(os.path.join(path, ""))
        (folders if is_library else homes).add(path)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str):
            continue
        if library.is_standard(path):
            folders.add(os.path.dirname(path))
        else:
            watch("file", path)
    for folder in sorted(folders):
        watch("folder", folder)
    for folder in sorted(homes):
        watch("home", folder)
    fields.extend(os.fsencode("name\0" + name) for name in sorted(names))
    return b"\0".join(fields)


# -- One run --------------------------------------------------------------------------------------------------


def receive_with(socket, size, count):
    """Receives at most `size` bytes, with at most `count` descriptors."""
    data, messages, _, _ = socket.recvmsg(size, _socket.CMSG_SPACE(count * WORD), CLOSE_ON_EXEC)
    descriptors = []
    for level, kind, content in messages:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            for at in range(0, len(content) - len(content) % WORD, WORD):
                descriptors.append(int.from_bytes(content[at : at + WORD], sys.byteorder))
    return data, descriptors


def receive(conn):
    """Reads the request of a run. Exits if the request is incomplete."""
    data, descriptors = receive_with(conn, 1 << 16, 3)
    while len(data) < WORD or len(data) < WORD + int.from_bytes(data[:WORD], "little"):
        more = conn.recv(1 << 16)
        if not more:
            os._exit(0)
        data += more
    if len(descriptors) != 3:
        os._exit(0)
    folder, has_pwd, pwd = data[WORD:].split(b"\0")
    return descriptors, folder, pwd if has_pwd else None


def place(conn):
    """Sets up the descriptors, the directory and `PWD` as requested."""
    descriptors, folder, pwd = receive(conn)
    conn.close()
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
    for descriptor in descriptors:
        if descriptor > 2:
            os.close(descriptor)
    os.chdir(folder)
    if pwd is None:
        os.environ.pop("PWD", None)
    else:
        os.environ["PWD"] = os.fsdecode(pwd)


def fresh_main(script):
    """Makes the module in which the script runs, with the attributes that a fresh process gives it."""
    first = sys.modules["__main__"].__dict__
    main = type(sys)("__main__")
    main.__loader__ = _machinery.SourceFileLoader("__main__", script.file)
    if "__annotations__" in first:
        main.__annotations__ = {}
    main.__builtins__ = first["__builtins__"]
    main.__file__ = script.file
    if sys.version_info < (3, 15):
        main.__cached__ = None
    sys.modules["__main__"] = main
    return main


def execute(script, main):
    """Runs the script and returns its exit status, as the interpreter would compute it."""
    try:
        code = script.code
        if code is None:
            code = compile(script.source, script.file, "exec", 0, True)
        exec(code, main.__dict__)
        return 0
    except SystemExit as error:
        return status_of(error.code)
    except BaseException as caught:
        error = caught
    # Outside the handler, so that an error of the script's own `excepthook` does not get this one as its context.
    return uncaught(error)


def status_of(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    try:
        if sys.stderr is not None:
            sys.stderr.write(str(code))
            sys.stderr.write("\n")
    except BaseException:
        pass
    return 1


def uncaught(error):
    kind, trace = type(error), error.__traceback__
    # Leave out the frames of this file.
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    error = error.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(kind, error, trace)
    except SystemExit as stop:
        return status_of(stop.code)
    except BaseException as other:
        try:
            sys.stderr.write("Error in sys.excepthook:\n")
            sys.__excepthook__(type(other), other.with_traceback(other.__traceback__.tb_next), None)
            sys.stderr.write("\nOriginal exception was:\n")
            sys.__excepthook__(kind, error, trace)
        except BaseException:
            pass
    return -_signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1


def flush_streams(is_reported=False):
    """Flushes the streams. The interpreter reports a stream that it cannot flush only once."""
    status = 0
    out, err = sys.stdout, sys.stderr
    try:
        if out is not None and not out.closed:
            out.flush()
    except BaseException as error:
        status = 120
        try:
            if not is_reported:
                err.write("Exception ignored in: %r\n%s: %s\n" % (out, type(error).__name__, error))
        except BaseException:
            pass
    try:
        if err is not None and not err.closed:
            err.flush()
    except BaseException:
        status = 120
    return status


def let_go(loaded):
    """Drops the objects that the script made, so that open files are flushed."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    clear(sys.modules["__main__"])
    made = [name for name in sys.modules if name not in loaded]
    left = [_weakref.ref(sys.modules.pop(name)) for name in reversed(made)]
    gc.collect()
    for module in left:
        clear(module())


def clear(module):
    """Clears the names of a module in the interpreter's order: names with one underscore first."""
    names = getattr(module, "__dict__", None)
    if type(names) is not dict:
        return
    for is_first in (True, False):
        for name in list(names):
            if name != "__builtins__" and is_first == (name[:1] == "_" and name[1:2] != "_"):
                names[name] = None


def finish(status, loaded):
    """Ends like the interpreter, but does not tear down all modules, because that takes long."""
    try:
        threading = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    try:
        import atexit

        atexit._run_exitfuncs()
    except BaseException:
        pass
    unflushed = flush_streams()
    status = unflushed or status
    try:
        let_go(loaded)
    except BaseException:
        pass
    status = flush_streams(is_reported=unflushed != 0) or status
    if status < 0:
        _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


def child(server, conn):
    """Runs in the forked process, from its start to its end."""
    try:
        os.setpgid(0, 0)
        server.leave(conn)
        script = server.script
        sys.argv[:] = script.argv
        if not server.is_safe:
            sys.path.insert(0, script.home)
        loaded = set(sys.modules)
        main = fresh_main(script)
        if server.collects:
            gc.enable()
        place(conn)
    except BaseException:
        try:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    # A process that the script forks also returns here and ends in the same way.
    finish(execute(script, main), loaded)


# -- The server -----------------------------------------------------------------------------------------------


class Server:
    def __init__(self, control, script, is_safe, collects):
        self.control = control
        self.script = script
        self.is_safe = is_safe
        self.collects = collects
        self.running = {}
        self.ended = {}
        self.poll = select.poll()
        self.poll.register(control.fileno(), select.POLLIN)
        self.wake, self.waker = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self.waker, False)
        self.poll.register(self.wake, select.POLLIN)
        self.old_handler = _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)

    def leave(self, conn):
        """Removes the server's descriptors and its signal handler from a child."""
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, self.old_handler or _signal.SIG_DFL)
        for other in list(self.running.values()) + [conn for _, conn in self.ended.values()]:
            other.close()
        self.control.close()
        os.close(self.wake)
        os.close(self.waker)
        self.poll = None

    def serve(self):
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == self.control.fileno():
                    self.accept()
                elif descriptor == self.wake:
                    self.look()
                else:
                    self.reap(descriptor)

    def accept(self):
        data, descriptors = receive_with(self.control, 1, 1)
        if not data:
            # The engine has ended or does not need this server any more.
            os._exit(0)
        for descriptor in descriptors:
            self.fork(_socket.socket(fileno=descriptor))

    def fork(self, conn):
        try:
            pid = os.fork()
        except OSError:
            conn.close()
            return
        if not pid:
            child(self, conn)
        try:
            # Parent and child both do this, so that the group exists before the engine learns its id.
            os.setpgid(pid, pid)
        except OSError:
            pass
        self.running[pid] = conn
        self.tell(conn, number(pid))

    def tell(self, conn, message):
        try:
            return conn.send(message, _socket.MSG_DONTWAIT) == len(message)
        except OSError:
            return False

    def look(self):
        """Finds the children that have ended, without reaping them."""
        try:
            while os.read(self.wake, 512):
                pass
        except BlockingIOError:
            pass
        for pid, conn in list(self.running.items()):
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                continue
            del self.running[pid]
            kind = b"E" if found.si_code == os.CLD_EXITED else b"S"
            descriptor = conn.fileno()
            self.ended[descriptor] = (pid, conn)
            if self.tell(conn, kind + number(found.si_status)):
                self.poll.register(descriptor, 0)
            else:
                self.reap(descriptor, False)

    def reap(self, descriptor, is_polled=True):
        pid, conn = self.ended.pop(descriptor)
        if is_polled:
            self.poll.unregister(descriptor)
        os.waitpid(pid, 0)
        conn.close()


def begin():
    collects = gc.isenabled()
    control = _socket.socket(fileno=os.dup(0))
    os.set_inheritable(control.fileno(), False)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    is_safe = getattr(sys.flags, "safe_path", False) or sys.flags.isolated
    if not is_safe and sys.path and not sys.path[0]:
        # `-c` has added this entry. Each child adds the folder of the script instead.
        del sys.path[0]
    try:
        script, message = load(sys.argv[1:])
    except Refused as refusal:
        message = b"refused\0" + os.fsencode(str(refusal))
        control.sendall(number(len(message)) + message)
        os._exit(0)
    if hasattr(sys, "orig_argv"):
        at = sys.orig_argv.index("-c")
        del sys.orig_argv[at : at + 2]
    server = Server(control, script, is_safe, collects)
    gc.collect()
    gc.freeze()
    gc.disable()
    control.sendall(number(len(message)) + message)
    server.serve()


begin()
