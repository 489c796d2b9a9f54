"""JupyterLab and the pool: what the user's own notebook server answers to its page, about the user's own cells."""


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    from bulletin_lab.pool_extension import PoolExtension

    return [{"module": "bulletin_lab.pool_extension", "app": PoolExtension}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "@bulletin/lab"}]
