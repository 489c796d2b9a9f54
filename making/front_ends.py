"""What npm installs, and what is built of frontend/."""

from __future__ import annotations

import shutil
import subprocess

from making.processes import HERE, Problem, do, say, works
from making.python_environments import VENV, digest

NODE_NEEDED = 20


def check_node() -> None:
    """Raise Problem unless there is a node that runs the proxy, with npm."""
    version = works("node", "--version")
    if version is None or works("npm", "--version") is None:
        raise Problem(f"the hub's proxy needs node >= {NODE_NEEDED} with npm, and PATH has none. Install Node.js.")
    if int(version.lstrip("v").split(".")[0]) < NODE_NEEDED:
        raise Problem(f"the hub's proxy needs node >= {NODE_NEEDED}; this is {version}. Install a newer Node.js.")


def install_proxy() -> None:
    """Install the hub's proxy and what builds frontend/, in the versions of package-lock.json."""
    check_node()
    stamp, now = HERE / "node_modules" / ".installed", digest(HERE / "package-lock.json")
    if stamp.exists() and stamp.read_text() == now:
        return
    say("installing the hub's proxy, and what builds its pages and the extension of JupyterLab, into node_modules")
    do("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", stdout=subprocess.DEVNULL)
    stamp.write_text(now)


def build_pages() -> None:
    """Build the pages of the hub's service by npm, where their sources have changed."""
    source, built = HERE / "frontend" / "pages", HERE / "bulletin_spawner" / "service" / "static" / "built"
    files = sorted(path for path in source.rglob("*") if path.is_file() and "node_modules" not in path.parts)
    stamp, now = built / ".built", digest(HERE / "package-lock.json", *files)
    if stamp.exists() and stamp.read_text() == now:
        return
    say("building the hub's pages")
    do("npm", "run", "--silent", "--workspace", "frontend/pages", "build")
    stamp.write_text(now)


def build_lab() -> None:
    """Build the extension of JupyterLab where its sources have changed, and let .venv's JupyterLab find it."""
    modules, source, built = HERE / "node_modules", HERE / "frontend" / "lab", HERE / "bulletin_lab" / "labextension"
    files = sorted(path for path in source.rglob("*") if path.is_file() and source / "lib" not in path.parents)
    stamp, now = built / ".built", digest(*files, HERE / "package-lock.json")
    if not stamp.exists() or stamp.read_text() != now:
        say("building the extension of JupyterLab")
        shutil.rmtree(built, ignore_errors=True)
        (core,) = VENV.glob("lib/python*/site-packages/jupyterlab/staging/package.json")
        builder = modules / "@jupyter" / "builder" / "lib" / "build-labextension.js"
        do("node", modules / "typescript" / "bin" / "tsc", "-p", source)
        do("node", builder, "--core-package-file", core, source, cwd=source, stdout=subprocess.DEVNULL)
        shutil.copyfile(source / "install.json", built / "install.json")
        stamp.write_text(now)
    link = VENV / "share" / "jupyter" / "labextensions" / "@bulletin" / "lab"
    if not (link.is_symlink() and link.resolve() == built.resolve()):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(built)
