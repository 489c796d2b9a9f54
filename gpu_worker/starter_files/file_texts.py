"""What stands in each file that `bulletin init` writes, for the answers that it got. Pure but for fresh secrets."""

import secrets
from pathlib import Path
from string import Template

import msgspec

from gpu_worker.starter_files.answers import SiteAnswers

_TEMPLATES = Path(__file__).parent / "templates"
_PRIVATE, _PUBLIC = 0o600, 0o644


class StarterFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file: where it goes, what stands in it, and who may read it."""

    path: Path
    text: str
    mode: int = _PUBLIC


def compose(answers: SiteAnswers) -> list[StarterFile]:
    """Compose all files of a set-up. Secrets are drawn anew with each call."""
    match answers.kind:
        case "workstation":
            return _workstation(answers)
        case "server":
            return _server(answers)
        case "nodes":
            return _nodes(answers)


def _workstation(answers: SiteAnswers) -> list[StarterFile]:
    out = answers.out
    groups: dict[str, dict[str, list[str]]] = {name: {"users": []} for name in answers.groups}
    return [
        StarterFile(
            path=out / "jupyterhub_config.py",
            text=_fill("workstation_hub", answers, load_groups=_show(groups)),
        ),
        _pool_settings(answers, more=""),
        _quotas(answers, out),
        StarterFile(path=out / "password", text=secrets.token_urlsafe(9) + "\n", mode=_PRIVATE),
        StarterFile(path=out / "admin-password", text=secrets.token_urlsafe(32) + "\n", mode=_PRIVATE),
    ]


def _server(answers: SiteAnswers) -> list[StarterFile]:
    return [
        _unix_hub(answers, answers.out, "server"),
        _pool_settings(answers, more=_fill("unix_users_more", answers)),
        _quotas(answers, answers.out),
    ]


def _nodes(answers: SiteAnswers) -> list[StarterFile]:
    hub, token = answers.out / "hub", secrets.token_hex(32)
    url = f"http://127.0.0.1:{answers.ports[1]}/hub/api"
    env = f"JUPYTERHUB_API_URL={url}\nJUPYTERHUB_API_TOKEN={token}\n"
    quotas = _quotas(answers, hub)
    return [
        _unix_hub(answers, hub, "nodes"),
        StarterFile(
            path=hub / "bulletin_config.py",
            text=_fill("broker", answers, quota_file=_show(str(quotas.path))),
        ),
        quotas,
        StarterFile(path=hub / "bulletin-token", text=token + "\n", mode=_PRIVATE),
        StarterFile(path=hub / "hub.env", text=env, mode=_PRIVATE),
        StarterFile(path=answers.out / "node" / "bulletin_config.py", text=_fill("node", answers)),
    ]


def _unix_hub(answers: SiteAnswers, out: Path, kind: str) -> StarterFile:
    path = out / "jupyterhub_config.py"
    title = _fill(f"{kind}_title", answers, hub_file=str(path))
    call = _fill(f"{kind}_call", answers)
    return StarterFile(path=path, text=_fill("unix_users_hub", answers, title=title, call=call))


def _pool_settings(answers: SiteAnswers, more: str) -> StarterFile:
    quota_file = _show(str(answers.out / "quotas.toml"))
    return StarterFile(
        path=answers.out / "bulletin_config.py",
        text=_fill("one_host_pool", answers, quota_file=quota_file, more=more),
    )


def _quotas(answers: SiteAnswers, out: Path) -> StarterFile:
    names = answers.groups or ("lab",)
    projects = "".join(f"#\n# [projects.{_show(name)}]\n# guaranteed = 1\n# weight = 2\n" for name in names)
    return StarterFile(path=out / "quotas.toml", text=_fill("quotas", answers, projects=projects))


def _fill(template: str, answers: SiteAnswers, **words: str) -> str:
    names = ("port", "hub_port", "proxy_port", "page_port", "kernel_port", "agent_port", "node_port")
    given = {
        "hub_file": str(answers.out / "jupyterhub_config.py"),
        "host": answers.host,
        "folder": _show(str(answers.folder)),
        "proxy": _show([answers.proxy]),
        "groups": _show(list(answers.groups)),
        "admins": _show(set(answers.admins)) if answers.admins else "set()",
        "pool_host": _show(answers.pool_host),
        **{name: str(port) for name, port in zip(names, answers.ports, strict=True)},
    }
    return Template((_TEMPLATES / f"{template}.txt").read_text()).substitute(given | words)


def _show(value: object) -> str:
    """Write a value as Python and TOML do, with double quotes: names and paths have none, nor a backslash."""
    if isinstance(value, set):
        return "{" + ", ".join(_show(one) for one in sorted(value)) + "}"
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
