"""The notebook side of Bulletin: `%load_ext bulletin_magic` brings %%gpu, %gpu and `gpu`."""

from IPython.core.interactiveshell import InteractiveShell

from bulletin.offload import gpu

__all__ = ["gpu", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics. Nothing is connected or started before the first %%gpu."""
    from bulletin_magic.commands.gpu_object import NotebookOffload
    from bulletin_magic.commands.magics import BulletinMagics

    magics = BulletinMagics(shell)
    shell.register_magics(magics)
    shell.magics_manager.register_alias("GPU", "gpu", "cell")
    NotebookOffload(shell, magics).install()


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Give the session back and take the magics away."""
    from bulletin_magic.commands.gpu_object import NotebookOffload

    NotebookOffload.uninstall(shell)
    magics = shell.magics_manager.registry.pop("BulletinMagics", None)
    if magics is not None:
        magics.unload()
        for kind, name in (
            ("cell", "gpu"),
            ("cell", "GPU"),
            ("cell", "remote"),
            ("cell", "cpu"),
            ("line", "gpu"),
            ("line", "%gpu"),
        ):
            shell.magics_manager.magics[kind].pop(name, None)
