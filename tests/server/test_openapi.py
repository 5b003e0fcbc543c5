"""openapi.yaml states what the server does: written from the code, and fuzzed against a live server."""

from __future__ import annotations

import os

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from ocman_jupyter.server import openapi
from ocman_jupyter.server.base import OcmanHandler
from ocman_jupyter.server.routes import ROUTES
from tests.server import live

WRITTEN = yaml.safe_load(openapi.PATH.read_text(encoding="utf-8"))

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


def test_the_file_is_what_the_code_says():
    """After a change run `python -m ocman_jupyter.server.openapi`."""
    assert openapi.text() == openapi.PATH.read_text(encoding="utf-8")


def test_its_schemas_are_those_of_the_records():
    schemas = WRITTEN["components"]["schemas"]
    for _, _, served in openapi.operations():
        kinds = [(served.body, "validation")] if served.body else []
        kinds += [(kind, "serialization") for kind in served.answers.values() if isinstance(kind, type)]
        for kind, mode in kinds:
            schema = TypeAdapter(kind).json_schema(ref_template=openapi.REF, mode=mode)
            inner = schema.pop("$defs", {})
            assert schemas[kind.__name__] == schema
            for name, one in inner.items():
                assert schemas[name] == one


def test_every_route_and_verb_is_in_it():
    served = {(f"/{address}", verb) for address, verb, _ in openapi.operations()}
    assert served == {(path, verb) for path, verbs in WRITTEN["paths"].items() for verb in verbs}
    for address, handler in ROUTES:
        own = {verb for verb in openapi.VERBS if verb in vars(handler)}
        assert own == {verb for path, verb in served if path == f"/{address}"}
        assert issubclass(handler, OcmanHandler) or address == "events"


def test_bodies_and_answers_have_no_unknown_references():
    text = openapi.PATH.read_text(encoding="utf-8")
    for name in set(yaml_references(WRITTEN)):
        kind, key = name.removeprefix("#/components/").split("/")
        assert key in WRITTEN["components"][kind], name
    assert "&id" not in text  # no YAML aliases: not every reader knows them


def yaml_references(value):
    if isinstance(value, dict):
        for key, one in value.items():
            if key == "$ref":
                yield one
            else:
                yield from yaml_references(one)
    elif isinstance(value, list):
        for one in value:
            yield from yaml_references(one)


# --- fuzzing ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with live.server() as running:
        yield running


SCHEMA = schemathesis.openapi.from_dict(WRITTEN)
OPERATIONS = {f"{one.ok().method.upper()} {one.ok().path}": one.ok() for one in SCHEMA.get_all_operations()}

KNOWN = st.sampled_from([None, "ses_1", "per_1", "ses_none"])
"""An id that the host has, or has not; None leaves the drawn one."""


def fuzz(server, operation, examples):
    modes = schemathesis.GenerationMode
    cases = st.one_of(
        *(operation.as_strategy(generation_mode=mode) for mode in (modes.POSITIVE, modes.NEGATIVE))
    )

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        derandomize=True,
    )
    @given(case=cases, known=KNOWN)
    def run(case, known):
        if known is not None and "id" in (case.path_parameters or {}) and not case.path.endswith("/stream"):
            case.path_parameters["id"] = known
        response = case.call(base_url=f"{server.url}api/ocman", headers=server.headers, timeout=20)
        assert response.status_code < 500, (response.status_code, response.text[:500])
        # The check of refusals does not know that 413 is one.
        checks = [one for one in CHECKS if response.status_code != 413 or one is not negative_data_rejection]
        case.validate_response(response, checks=checks)

    run()


@pytest.mark.parametrize("name", OPERATIONS)
def test_fuzzed_against_the_live_server(server, name):
    fuzz(server, OPERATIONS[name], int(os.environ.get("OCMAN_FUZZ_EXAMPLES", "25")))


@pytest.mark.load
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", OPERATIONS)
def test_fuzzed_for_long(server, name):
    fuzz(server, OPERATIONS[name], 300)
