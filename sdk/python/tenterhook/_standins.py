"""Makes the modules that hooks of another hook system import available, whether or not that system is installed.

A stand-in contains only the names that hooks need. Everything else of the system is imported from the project's own
package of that name, or else from the installed package, if there is one.
"""

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import types


class StandIn(types.ModuleType):
    """A module that looks up its names on first use. Names that it lacks come from the installed module."""

    def __getattr__(self, name):
        if name == "__all__" or not name.startswith("__"):
            finder, installed = self.__spec__.loader_state
            if name == "__all__" and self.__name__ in finder.names:
                return list(finder.names[self.__name__])
            if name in finder.names.get(self.__name__, ()):
                return finder.value(name)
            if installed is not None:
                return getattr(self._load(installed), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def _load(self, installed):
        """Returns the installed module, which the stand-in hides."""
        if "_installed" not in self.__dict__:
            # Set first, because the module may import the stand-in.
            self._installed = importlib.util.module_from_spec(installed)
            if installed.origin is not None:
                installed.loader.exec_module(self._installed)
        return self._installed


class StandIns:
    """A finder for `sys.meta_path` that provides the stand-ins of one hook system.

    `names` lists the names in each module, and `value` returns the value of a name. `roots` are the folders of projects
    that may contain packages of the system. They are searched before `sys.path`, and only for these packages.
    """

    def __init__(self, system, names, value, roots=()):
        self.system = system
        self.names = names
        self.value = value
        self.roots = [str(root) for root in roots]
        # Whether the stand-ins hide installed modules.
        self.comes_first = False
        self.packages = {parent for name in names for parent in _parents(name)}

    def find_spec(self, name, path=None, target=None):
        if name in self.names or name in self.packages:
            installed = self._installed(name, path)
            if installed is not None and not self.comes_first:
                return installed
            spec = importlib.machinery.ModuleSpec(name, self, is_package=name in self.packages)
            spec.loader_state = (self, installed)
            if name in self.packages and installed is not None:
                spec.submodule_search_locations.extend(installed.submodule_search_locations or ())
            return spec
        top = name.partition(".")[0]
        if top in self.packages and top != name and self._is_missing(name, top, path):
            raise ModuleNotFoundError(self._missing(name, top), name=name)
        return None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        """A stand-in creates its names on first use, so there is nothing to run."""

    def add_root(self, root):
        """Adds the folder of a project."""
        if root is not None and root not in self.roots:
            self.roots.append(root)

    def add_last(self):
        """Provides the modules that Python does not find in any other way."""
        self.comes_first = False
        sys.meta_path.append(self)

    def add_first(self):
        """Provides the modules instead of installed ones."""
        self.comes_first = True
        sys.meta_path.insert(0, self)

    @contextlib.contextmanager
    def alone(self):
        """Provides the modules instead of installed ones, within a `with` statement."""
        ours = self.packages.union(self.names)
        hidden = {name: sys.modules.pop(name) for name in ours.intersection(sys.modules)}
        self.add_first()
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            for name in ours.intersection(sys.modules):
                del sys.modules[name]
            sys.modules.update(hidden)

    def _installed(self, name, path):
        """Returns the spec of the module that this finder hides, or None."""
        if "." not in name and self.roots:
            spec = importlib.machinery.PathFinder.find_spec(name, self.roots)
            if spec is not None:
                return spec
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path) if find is not None and not isinstance(finder, StandIns) else None
            if spec is not None:
                return spec
        return None

    def _is_missing(self, name, top, path):
        return isinstance(sys.modules.get(top), StandIn) and self._installed(name, path) is None

    def _missing(self, name, top):
        _, installed = sys.modules[top].__spec__.loader_state
        if installed is None:
            return (
                f"No module named {name!r}: {self.system} is not installed for the Python that runs this file, the "
                f"project has no package {top!r}, and Tenterhook does not replace this module"
            )
        where = os.path.dirname(installed.origin or "") or next(iter(installed.submodule_search_locations or ()), top)
        return f"No module named {name!r}: the package in {where} does not contain it"


def _parents(name):
    parts = name.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts))]
