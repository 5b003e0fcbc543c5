"""The seed: ours is allowed, and what the user said keeps its meaning everywhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocman_jupyter.opencode import permissions

ROOT = "/home/u/.worktrees/repo"
OURS = f"{ROOT}/**"


def seeded(user: object) -> dict:
    value = user if isinstance(user, str) or user is None else json.dumps(user)
    text, warnings = permissions.seed(ROOT, value)
    assert text is not None and warnings == []
    return json.loads(text)


def verdict(rules: dict, permission: str, pattern: str) -> str | None:
    """What OpenCode decides: the last rule that matches, in written order."""
    decided = None
    for name, said in rules.items():
        for one, action in ({"*": said} if isinstance(said, str) else said).items():
            if permissions.matches(permission, name) and permissions.matches(pattern, one):
                decided = action
    return decided


def test_without_rules_of_the_user_only_our_root_is_allowed():
    assert seeded(None) == seeded("") == {"external_directory": {OURS: "allow"}}


def test_rules_for_other_permissions_hold():
    assert seeded({"bash": {"rm *": "deny"}}) == {
        "bash": {"rm *": "deny"}, "external_directory": {OURS: "allow"}}


def test_rules_for_other_directories_hold_and_ours_is_last():
    rules = seeded({"external_directory": {"/data/*": "deny", "/x/*": "allow"}})
    assert list(rules["external_directory"]) == ["/data/*", "/x/*", OURS]


@pytest.mark.parametrize("action", ["deny", "ask", "allow"])
def test_one_word_for_all_external_directories_holds_outside_our_root(action: str):
    assert seeded({"external_directory": action}) == {"external_directory": {"*": action, OURS: "allow"}}


def test_a_rule_that_denies_our_root_gives_way_with_a_warning():
    text, warnings = permissions.seed(ROOT, json.dumps({"external_directory": {OURS: "deny", "*": "ask"}}))
    assert list(json.loads(text or "")["external_directory"].items()) == [("*", "ask"), (OURS, "allow")]
    assert [code for code, _ in warnings] == ["permission_overridden"]


def test_a_rule_for_everything_keeps_its_meaning_wherever_it_stands():
    before = {"*": "ask", "external_directory": {"/data/*": "deny"}}
    after = {"external_directory": {"/data/*": "deny"}, "*": "ask"}
    for user, data in ((before, "deny"), (after, "ask")):
        rules = seeded(user)
        assert verdict(rules, "external_directory", f"{ROOT}/one/*") == "allow"
        assert verdict(rules, "external_directory", "/data/x") == data
        assert verdict(rules, "bash", "ls") == "ask"


def test_one_word_for_everything_is_taken_as_a_rule():
    assert seeded('"deny"') == {"*": "deny", "external_directory": {OURS: "allow"}}


@pytest.mark.parametrize("broken", ["{", "allow", "[]", "3", '"maybe"', "null", "[" * 100_000])
def test_a_broken_value_is_left_out_with_a_warning(broken: str):
    text, warnings = permissions.seed(ROOT, broken)
    assert json.loads(text or "") == {"external_directory": {OURS: "allow"}}
    assert [code for code, _ in warnings] == ["permission_invalid"]


def test_a_broken_part_is_left_out_and_the_rest_holds():
    text, warnings = permissions.seed(ROOT, '{"external_directory": ["/x"], "bash": "ask"}')
    assert json.loads(text or "") == {"bash": "ask", "external_directory": {OURS: "allow"}}
    assert [code for code, _ in warnings] == ["permission_invalid"]


def test_a_restriction_below_our_root_is_overridden_with_a_warning():
    text, warnings = permissions.seed(ROOT, json.dumps({"external_directory": {f"{ROOT}/secret/*": "deny"}}))
    assert list(json.loads(text or "")["external_directory"])[-1] == OURS
    assert [code for code, _ in warnings] == ["permission_overridden"]


def test_inherited_rules_come_between_the_users_and_ours():
    inherited = [{"permission": "external_directory", "pattern": "/data/*", "action": "allow"},
                 {"permission": "bash", "pattern": "git *", "action": "allow"}]
    text, _ = permissions.seed(ROOT, '{"external_directory": {"/data/*": "deny"}}', inherited)
    rules = json.loads(text or "")
    assert list(rules["external_directory"].items()) == [("/data/*", "allow"), (OURS, "allow")]
    assert rules["bash"] == {"git *": "allow"}


@pytest.mark.parametrize("root", ["/a*b/.worktrees/r", "/what?/.worktrees/r", "/\udcff/.worktrees/r"])
def test_a_root_that_no_rule_can_name_is_refused_with_the_reason(root: str):
    text, warnings = permissions.seed(root, '{"bash": "ask"}')
    assert text == '{"bash": "ask"}'
    assert [code for code, _ in warnings] == ["permission_not_seeded"]
    assert permissions.session_rules(root) == []


def test_session_rules_have_the_same_scope():
    assert permissions.session_rules(ROOT + "/") == [
        {"permission": "external_directory", "pattern": OURS, "action": "allow"}]


def test_a_wildcard_crosses_slashes_and_everything_else_is_literal():
    assert permissions.matches("/a/b/c", "/a/*") and permissions.matches("a\nb", "a*")
    assert permissions.matches("/ab", "/a?") and not permissions.matches("/abc", "/a?")
    assert not permissions.matches("/axb", "/a.b") and not permissions.matches("/a", "/a[a]")


def test_seeded_is_what_the_configuration_says():
    def configured(permission: object) -> bool:
        return permissions.is_seeded({"permission": permission}, ROOT)

    assert configured({"external_directory": {OURS: "allow"}})
    assert configured({"external_directory": "allow"})
    assert not configured({"external_directory": {OURS: "allow", "*": "ask"}})
    assert not configured({"external_directory": {f"{ROOT}-2/**": "allow"}})
    assert not configured({"bash": "allow"})
    assert not configured(None)
    assert not permissions.is_seeded({}, ROOT)


def test_the_order_between_permissions_is_asked_of_the_agents():
    config = {"permission": {"external_directory": {OURS: "allow"}, "*": "ask"}}
    assert permissions.order_matters(config)
    assert not permissions.order_matters({"permission": {**config["permission"], "*": "allow"}})
    assert not permissions.order_matters({"permission": {"bash": "ask"}})
    rules = [{"permission": "external_directory", "pattern": OURS, "action": "allow"},
             {"permission": "*", "pattern": "*", "action": "ask"}]
    agents = [{"mode": "primary", "permission": rules}]
    assert not permissions.agents_allow(agents, ROOT)
    assert permissions.agents_allow([{"mode": "primary", "permission": rules[::-1]}], ROOT)
    assert not permissions.agents_allow([{"mode": "subagent", "permission": rules[::-1]}], ROOT)


ACTIONS = st.sampled_from(["allow", "ask", "deny"])
PATTERNS = st.sampled_from(["*", "/data/*", "/data/x/*", "/d?ta/*", "/home/*", "~/x"])
RULES = st.dictionaries(
    st.sampled_from(["*", "bash", "external_directory", "external_*", "edit"]),
    ACTIONS | st.dictionaries(PATTERNS, ACTIONS, max_size=4), max_size=5)


@given(RULES)
def test_nothing_but_our_root_changes_its_meaning(user: dict):
    text, _ = permissions.seed(ROOT, json.dumps(user))
    rules = json.loads(text or "")
    assert verdict(rules, "external_directory", f"{ROOT}/one/*") == "allow"
    for permission in ("external_directory", "external_other", "bash", "edit", "read"):
        for pattern in ("/data/*", "/data/x/*", "/etc/*", "ls", "/home/u/.worktrees/other/*"):
            assert verdict(rules, permission, pattern) == verdict(user, permission, pattern)
