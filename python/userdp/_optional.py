"""Names that are loaded on first use, because they need a package that need not be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["loader"]


def loader(
    package: str, modules: Mapping[str, str], *, needs: str, distribution: str, extra: str
) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package, which imports the module that has a name.

    Parameters
    ----------
    package : str
        The package that it is for.
    modules : mapping from str to str
        The names, and the module of the package that each is in.
    needs, distribution, extra : str
        The package without which these modules cannot be imported, what it is called where it is installed from, and
        the extra of userdp that installs it.

    Returns
    -------
    callable
        From a name to what it stands for. It raises AttributeError for other names, and ImportError where the package
        is missing.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(f"{package}.{modules[name]}")
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != needs:
                raise
            raise ImportError(f"{package}.{name} needs {distribution}: pip install 'userdp[{extra}]'") from None
        return getattr(module, name)

    return load
