"""The description of the REST API, made from the routes and their records.

``python -m ocman_jupyter.server.openapi`` writes ``openapi.yaml``; a test holds the file to the code.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from .. import __version__
from ..errors import InvalidRequest, OcmanError
from .answers import Error
from .base import Operation
from .parsing import RequestTooLarge
from .routes import BASE, ROUTES
from .streams import ClientMessage

PATH = Path(__file__).with_name("openapi.yaml")

REF = "#/components/schemas/{model}"

VERBS = ("get", "post", "put", "patch", "delete")

DESCRIPTION = """\
Everything is JSON (UTF-8, snake_case).  Paths are absolute paths on the host that owns them; times are
RFC 3339 UTC.  Unknown fields and unknown parameters are refused (`invalid_request`).  The content type of
a request is not looked at.  Every route wants Jupyter's own login (token or cookie, with `_xsrf` as
Jupyter wants it) and asks the server's authorizer about the resource `ocman`.

Any other address below this base answers 404, any other method 405, both with `not_found`.
"""

OWN_ANSWERS = {
    "events": {
        101: "The WebSocket.  Each frame is `{type, host, seq, data}`; the first one of each host is of type "
        "`snapshot`, and so is the first one after a gap.  The client may send a `ClientMessage`; what is "
        "none is answered with a frame of type `error`.",
        426: "A WebSocket version that the server does not speak.",
    },
    "sessions/{id}/stream": {200: "Server-sent events; the data of each is `{type, host, seq, data}`."},
}

COMMON = {
    400: (
        "Invalid",
        "`invalid_request`: the request has not the right shape; `details.field` names what is wrong.",
    ),
    401: ("NotLoggedIn", "`unauthorized`: Jupyter's login is missing."),
    403: (
        "NotAllowed",
        "`unauthorized`: Jupyter refused the login, the `_xsrf` cookie or the action; or `forbidden_path`.",
    ),
    413: ("TooLarge", "`invalid_request`: the body is larger than `OcmanSettings.max_body_bytes`."),
    500: ("Internal", "`internal`: a fault of ours; the server's log says more."),
}

PARAMETERS = {"id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}}


def operations() -> list[tuple[str, str, Operation]]:
    """Address, verb and operation of everything that is served."""
    return [
        (address, verb, getattr(handler, verb).operation)
        for address, handler in ROUTES
        for verb in VERBS
        if hasattr(getattr(handler, verb), "operation")
    ]


def document() -> dict[str, Any]:
    """The whole description."""
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for address, verb, served in operations():
        paths[f"/{address}"][verb] = _operation(address, verb, served)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ocman_jupyter", "version": __version__, "description": DESCRIPTION},
        "servers": [
            {
                "url": "{base_url}" + BASE.lstrip("/"),
                "description": "The base URL of the Jupyter server, which ends with a slash.",
                "variables": {"base_url": {"default": "/"}},
            }
        ],
        "security": [{"token": []}, {"cookie": []}],
        "paths": dict(paths),
        "components": {
            "schemas": schemas(),
            "responses": {
                name: {"description": told, "content": _json({"$ref": REF.format(model="Error")})}
                for name, told in COMMON.values()
            },
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`token <the server's token>`",
                },
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "_xsrf",
                    "description": "Jupyter's login cookie; `_xsrf` goes into the header `X-XSRFToken` too.",
                },
            },
        },
    }


def schemas() -> dict[str, Any]:
    """JSON schemas of every record that a request or an answer is made of."""
    wanted: list[tuple[Any, JsonSchemaMode]] = [(Error, "serialization"), (ClientMessage, "validation")]
    for _, _, served in operations():
        wanted.extend((answer, "serialization") for answer in served.answers.values() if answer is not None)
        if served.body is not None:
            wanted.append((served.body, "validation"))
    adapters = [(number, mode, TypeAdapter(kind)) for number, (kind, mode) in enumerate(wanted)]
    _, found = TypeAdapter.json_schemas(adapters, ref_template=REF)
    return dict(sorted(found["$defs"].items()))


def statuses(served: Operation) -> dict[int, list[str]]:
    """The codes that can come with each status that is an error."""
    codes: dict[int, set[str]] = defaultdict(set)
    always: tuple[type[OcmanError], ...] = (InvalidRequest, RequestTooLarge)
    for error in (*served.errors, *always):
        codes[error.status].add(error.code)
    for status in (401, 403):
        codes[status].add("unauthorized")
    codes[500].add(OcmanError.code)
    return {status: sorted(found) for status, found in sorted(codes.items())}


def _operation(address: str, verb: str, served: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in served.answers.items():
        told = OWN_ANSWERS.get(address, {}).get(status, "Done.")
        responses[str(status)] = {"description": told}
        if kind is not None:
            responses[str(status)]["content"] = _json(_reference(kind))
        elif status == 200:
            responses[str(status)]["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    for status, told in OWN_ANSWERS.get(address, {}).items():
        responses.setdefault(str(status), {"description": told})
    for status, codes in statuses(served).items():
        if status in COMMON:
            responses[str(status)] = {"$ref": f"#/components/responses/{COMMON[status][0]}"}
        else:
            responses[str(status)] = {
                "description": " · ".join(f"`{code}`" for code in codes),
                "content": _json({"$ref": REF.format(model="Error")}),
            }
    described: dict[str, Any] = {
        "operationId": f"{verb} {address}",
        "summary": served.summary,
        "tags": [address.split("/")[0]],
        "x-jupyter-action": served.action,
        "responses": dict(sorted(responses.items())),
    }
    parameters = [PARAMETERS[name] for name in PARAMETERS if f"{{{name}}}" in address] + _query(served)
    if parameters:
        described["parameters"] = parameters
    if served.body is not None:
        needed = any(field.is_required() for field in served.body.model_fields.values())
        described["requestBody"] = {
            "required": needed,
            "content": _json(_reference(served.body)),
        }
    return described


def _query(served: Operation) -> list[dict[str, Any]]:
    schema = served.query.model_json_schema()
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(field)}
        for name, field in schema.get("properties", {}).items()
    ]


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """A query cannot say null: an absent parameter is what that would be."""
    kinds = [kind for kind in field.get("anyOf", []) if kind != {"type": "null"}]
    kept = {key: value for key, value in field.items() if key not in ("anyOf", "title")}
    if kept.get("default", 0) is None:
        del kept["default"]
    return {**(kinds[0] if kinds else {}), **kept}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _reference(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {"$ref": REF.format(model=kind.__name__)}
    return {"anyOf": [_reference(one) for one in kind.__args__]}


def text() -> str:
    """``openapi.yaml``."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def block(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Plain.add_representer(str, block)
    head = "# Written by `python -m ocman_jupyter.server.openapi`; change the code, not this file.\n"
    return head + yaml.dump(document(), Dumper=Plain, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
