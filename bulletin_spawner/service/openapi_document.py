"""The OpenAPI document of the REST API, made of the table of its endpoints."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

import bulletin
from bulletin.hub_scopes import ACCESS_SCOPE, LEAD_SCOPE, MANAGE_SCOPE
from bulletin_spawner.service.api_endpoints import Endpoint
from bulletin_spawner.service.api_problems import ApiProblem
from bulletin_spawner.service.viewer import Role

_SCOPES: dict[Role, list[str]] = {
    "user": [ACCESS_SCOPE],
    "lead": [ACCESS_SCOPE, LEAD_SCOPE],
    "admin": [ACCESS_SCOPE, MANAGE_SCOPE],
}
_REFUSALS = {
    400: "What was asked cannot be read",
    403: "Not allowed, or nobody is logged in",
    404: "There is nothing of that name that you may see",
    409: "It is not in a state for that",
    413: "The body is too large",
    422: "What it would come to has errors: nothing was done",
    429: "Too much was asked for; the sentence says when again",
    503: "The pool, or its ledger, does not answer",
}
#: With these only endpoints refuse that say so.
_FEW_REFUSE = (422,)


def describe_api(endpoints: Sequence[Endpoint], server: str) -> dict[str, Any]:
    """Write the document (OpenAPI 3.1). `server` is the address below which the paths are."""
    types: list[Any] = [ApiProblem]
    for one in endpoints:
        types += [one.asks, one.answers, *([one.body] if one.body is not None else []), *one.refuses.values()]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        operation: dict[str, Any] = {
            "operationId": one.name,
            "summary": one.summary,
            "description": f"For: {_whom(one.role)}.",
            "parameters": list(_parameters(one)),
            "security": [{"token": []}, {"login": _SCOPES[one.role]}],
            "responses": {
                "200": {"description": "OK", "content": _json(by_type[one.answers])},
                **{
                    str(status): {"description": text, "content": _json(_problem(one, status, by_type))}
                    for status, text in _REFUSALS.items()
                    if status not in _FEW_REFUSE or status in one.refuses
                },
            },
        }
        if one.body is not None:
            operation["requestBody"] = {"required": True, "content": _json(by_type[one.body])}
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bulletin",
            "version": "1",
            "description": f"The pool of GPUs as its pages show it. Bulletin {bulletin.__version__}.",
        },
        "servers": [{"url": server}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": f"`token …` with a token of the hub that has the scope {ACCESS_SCOPE}",
                },
                "login": {
                    "type": "oauth2",
                    "description": "The login of the hub, as the pages use it",
                    "flows": {
                        "authorizationCode": {
                            "authorizationUrl": "/hub/api/oauth2/authorize",
                            "tokenUrl": "/hub/api/oauth2/token",
                            "scopes": {
                                ACCESS_SCOPE: "Use the pool and see its pages",
                                LEAD_SCOPE: "Lead projects",
                                MANAGE_SCOPE: "Manage the pool",
                            },
                        }
                    },
                },
            },
        },
    }


def _problem(endpoint: Endpoint, status: int, by_type: dict[Any, Any]) -> Any:
    """Return the schema of what is answered with a status: with 422, nothing that says less than the endpoint names."""
    more = endpoint.refuses.get(status)
    if more is None:
        return by_type[ApiProblem]
    return by_type[more] if status in _FEW_REFUSE else {"anyOf": [by_type[more], by_type[ApiProblem]]}


def _whom(role: Role) -> str:
    words = {"user": "everybody who may use the pool", "lead": "leads of projects, and admins", "admin": "admins"}
    return words[role]


def _parameters(endpoint: Endpoint) -> Any:
    in_path = set(re.findall(r"{(\w+)}", endpoint.path))
    schema = msgspec.json.schema_components([endpoint.asks], ref_template="{name}")[1]
    fields = schema[endpoint.asks.__name__]
    for name, field in fields["properties"].items():
        is_in_path = name in in_path
        yield {
            "name": name,
            "in": "path" if is_in_path else "query",
            "required": is_in_path or name in fields.get("required", ()),
            "schema": field,
        }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
