"""The notebook side of Bulletin: `%load_ext bulletin_magic` brings %%gpu and %gpu."""

from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics. Nothing is connected or started before the first %%gpu."""
    from bulletin_magic.magics import BulletinMagics

    shell.register_magics(BulletinMagics(shell))
    shell.magics_manager.register_alias("GPU", "gpu", "cell")


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Give the session back and take the magics away."""
    magics = shell.magics_manager.registry.pop("BulletinMagics", None)
    if magics is not None:
        magics.close()
        for kind, name in (("cell", "gpu"), ("cell", "GPU"), ("line", "gpu"), ("line", "%gpu")):
            shell.magics_manager.magics[kind].pop(name, None)
