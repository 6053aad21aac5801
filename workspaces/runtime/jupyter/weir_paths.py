"""Stands in for the module IPython.paths until more of it is needed than one function.

Before version 7, Jupyter Notebook imports that function when it starts, and with it all of
IPython: a quarter of the time until it responds.
"""

import importlib
import os
import sys
import types

NAME = "IPython.paths"


def get_ipython_dir():
    return os.path.expanduser(os.environ.get("IPYTHONDIR") or "~/.ipython")


def of_ipython(name):
    """Return a name of the module itself, which is imported now."""
    if name.startswith("__"):  # such as __path__, which an import looks for
        raise AttributeError(name)
    if sys.modules.get(NAME) is stand_in:
        del sys.modules[NAME]
    return getattr(importlib.import_module(NAME), name)


stand_in = types.ModuleType(NAME)
stand_in.get_ipython_dir = get_ipython_dir
stand_in.__getattr__ = of_ipython


def load():
    sys.modules.setdefault(NAME, stand_in)
