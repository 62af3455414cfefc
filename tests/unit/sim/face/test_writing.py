"""Writing: create, replace, the four kinds of patch, what is refused, and who owns which field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., dict[str, Any]]
Talk = Callable[..., None]
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
POOLS = "/apis/karpenter.sh/v1/nodepools"


def test_creating_answers_with_what_is_stored(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        answer = await client.create(PODS, pod("a"), fieldManager="kubectl-create")
        assert answer.status_code == 201
        stored = answer.json()
        assert stored["metadata"]["uid"]
        assert stored["spec"]["restartPolicy"] == "Always"
        (entry,) = stored["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("kubectl-create", "Update")
        assert 'k:{"name": "app"}' in entry["fieldsV1"]["f:spec"]["f:containers"]
        again = await client.create(PODS, pod("a"))
        assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")

    talk(story)


def test_a_dry_run_keeps_nothing(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        version = client.cluster.store.resource_version
        assert (await client.create(PODS, pod("a"), dryRun="All")).status_code == 201
        assert (await client.ask("GET", f"{PODS}/a")).status_code == 404
        await client.create(MAPS, {"metadata": {"name": "c"}})
        answer = await client.patch(f"{MAPS}/c", {"data": {"a": "b"}}, dryRun="All")
        assert answer.json()["data"] == {"a": "b"}
        assert "data" not in await client.get(f"{MAPS}/c")
        assert (await client.ask("DELETE", f"{MAPS}/c", dryRun="All")).status_code == 200
        assert int(client.cluster.store.resource_version) == int(version) + 1

    talk(story)


def test_unknown_fields_are_refused_warned_of_or_dropped(talk: Talk, pool: Make) -> None:
    async def story(client: Any) -> None:
        manifest = pool("p", limts={"cpu": "1"})
        strict = await client.create(POOLS, manifest, fieldValidation="Strict")
        assert strict.status_code == 400
        assert 'strict decoding error: unknown field "spec.limts"' in strict.json()["message"]
        warned = await client.create(POOLS, manifest)
        assert warned.status_code == 201
        assert warned.headers["warning"] == '299 - "unknown field \\"spec.limts\\""'
        assert "limts" not in warned.json()["spec"]
        silent = await client.ask("PUT", f"{POOLS}/p", manifest, fieldValidation="Ignore")
        assert "warning" not in silent.headers

    talk(story)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"weight": "heavy"}, 400, 'spec.weight: found string "heavy", expected integer'),
        ({"weight": 101}, 422, "spec.weight in body should be less than or equal to 100"),
        ({"disruption": {"consolidationPolicy": "Never"}}, 422, "Unsupported value"),
        ({"template": {"spec": {"requirements": []}}}, 422, "spec.template.spec.nodeClassRef: Required value"),
        ({"replicas": 1, "weight": 3}, 422, "'weight' is not supported on static NodePools"),
    ],
)
def test_what_is_wrong_with_a_pool_is_told_by_field(
    talk: Talk, pool: Make, change: dict[str, Any], code: int, message: str
) -> None:
    async def story(client: Any) -> None:
        answer = await client.create(POOLS, pool("p", **change))
        status = answer.json()
        assert answer.status_code == code, status
        assert message in status["message"]
        if code == 422:
            assert status["details"]["kind"] == "NodePool"
            assert status["details"]["causes"][0]["field"].startswith("spec")

    talk(story)


def test_a_body_must_be_what_its_path_says(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        other = {**pod("a"), "kind": "Node"}
        assert "does not match" in (await client.create(PODS, other)).json()["message"]
        elsewhere = pod("a")
        elsewhere["metadata"]["namespace"] = "kube-system"
        assert (await client.create(PODS, elsewhere)).status_code == 400
        assert (await client.create("/api/v1/namespaces/nowhere/pods", pod("a"))).status_code == 404
        assert (await client.create(PODS, pod("A_b"))).status_code == 422
        assert (await client.ask("POST", f"{PODS}/a", pod("a"))).status_code == 405

    talk(story)


def test_replacing_needs_the_version_that_was_read(talk: Talk) -> None:
    async def story(client: Any) -> None:
        read = (await client.create(MAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}})).json()
        await client.patch(f"{MAPS}/c", {"data": {"a": "2"}})
        late = await client.ask("PUT", f"{MAPS}/c", {**read, "data": {"a": "3"}})
        assert (late.status_code, late.json()["reason"]) == (409, "Conflict")
        assert "the object has been modified" in late.json()["message"]
        del read["metadata"]["resourceVersion"]
        assert (await client.ask("PUT", f"{MAPS}/c", {**read, "data": {"a": "3"}})).json()["data"] == {"a": "3"}

    talk(story)


def test_patches_of_each_kind(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        await client.create(PODS, pod("a"))
        await client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1", "y": "2"}}})
        await client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": None}}}, "strategic")
        operations = [{"op": "test", "path": "/metadata/labels/y", "value": "2"}]
        operations.append({"op": "add", "path": "/metadata/labels/a~1b", "value": "3"})
        answer = await client.patch(f"{PODS}/a", operations, "json")
        assert answer.json()["metadata"]["labels"] == {"y": "2", "a/b": "3"}
        failed = await client.patch(f"{PODS}/a", [{"op": "remove", "path": "/nothing"}], "json")
        assert failed.status_code == 422
        unknown = await client.ask("PATCH", f"{PODS}/a", {}, kind="application/xml")
        assert unknown.status_code == 415

    talk(story)


def test_strategic_merge_joins_lists_by_their_keys(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        two = [{"name": "app", "image": "pause"}, {"name": "side", "image": "pause"}]
        await client.create(PODS, pod("a", containers=two))
        change = {"spec": {"containers": [{"name": "side", "image": "new"}]}}
        answer = await client.patch(f"{PODS}/a", change, "strategic")
        assert [item["image"] for item in answer.json()["spec"]["containers"]] == ["pause", "new"]
        whole = await client.patch(f"{PODS}/a", change, "merge")
        assert whole.status_code == 422, "a merge patch replaces the list, and a pod's containers are fixed"

    talk(story)


def test_strategic_merge_deletes_and_orders_as_the_client_saw_it(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        three = [{"name": name, "image": "pause"} for name in ("a", "b", "c")]
        manifest = pod("a", containers=three)
        manifest["metadata"]["finalizers"] = ["x/1", "x/2"]
        await client.create(PODS, manifest)
        order = {"$setElementOrder/finalizers": ["x/3", "x/2"]}
        change = {"$deleteFromPrimitiveList/finalizers": ["x/1"], "finalizers": ["x/2", "x/3"], **order}
        answer = await client.patch(f"{PODS}/a", {"metadata": change}, "strategic")
        assert answer.json()["metadata"]["finalizers"] == ["x/3", "x/2"]
        conditions = [{"type": name, "status": "True"} for name in ("A", "B", "C")]
        await client.patch(f"{PODS}/a/status", {"status": {"conditions": conditions}}, "strategic")
        change = [{"type": "B", "$patch": "delete"}, {"type": "D", "status": "True"}, {"type": "A", "status": "False"}]
        answer = await client.patch(f"{PODS}/a/status", {"status": {"conditions": change}}, "strategic")
        found = [(item["type"], item["status"]) for item in answer.json()["status"]["conditions"]]
        assert found == [("A", "False"), ("C", "True"), ("D", "True")]

    talk(story)


def test_custom_kinds_know_no_strategic_merge(talk: Talk, pool: Make) -> None:
    async def story(client: Any) -> None:
        await client.create(POOLS, pool("p"))
        answer = await client.patch(f"{POOLS}/p", {"spec": {"weight": 3}}, "strategic")
        assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")

    talk(story)


def test_status_and_the_rest_leave_each_other_alone(talk: Talk, pool: Make) -> None:
    async def story(client: Any) -> None:
        await client.create(POOLS, pool("p"))
        main = (await client.patch(f"{POOLS}/p", {"spec": {"weight": 3}, "status": {"nodes": 9}})).json()
        assert main["spec"]["weight"] == 3
        assert main.get("status", {}).get("nodes") != 9
        status = (await client.patch(f"{POOLS}/p/status", {"spec": {"weight": 5}, "status": {"nodes": 9}})).json()
        assert (status["spec"]["weight"], status["status"]["nodes"]) == (3, 9)

    talk(story)


def applied(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_apply_makes_changes_and_takes_back_what_is_its_own(talk: Talk) -> None:
    async def story(client: Any) -> None:
        made = await client.apply(f"{MAPS}/c", applied(a="1", b="2"))
        assert made.status_code == 201
        await client.patch(f"{MAPS}/c", {"data": {"x": "theirs"}}, fieldManager="them")
        again = await client.apply(f"{MAPS}/c", applied(a="1"))
        assert again.status_code == 200
        assert again.json()["data"] == {"a": "1", "x": "theirs"}, "b is gone, x is somebody else's"
        before = again.json()["metadata"]["resourceVersion"]
        await client.cluster.clock.sleep(60)
        same = await client.apply(f"{MAPS}/c", applied(a="1"))
        assert same.json()["metadata"]["resourceVersion"] == before, "an apply that changes nothing is no write"

    talk(story)


def test_two_managers_who_want_different_things_conflict(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.apply(f"{MAPS}/c", applied(a="1", b="1"), "first")
        assert (await client.apply(f"{MAPS}/c", applied(a="1"), "second")).status_code == 200, "they agree"
        answer = await client.apply(f"{MAPS}/c", applied(b="2"), "second")
        status = answer.json()
        assert (answer.status_code, status["reason"]) == (409, "Conflict")
        assert status["message"] == 'Apply failed with 1 conflict: conflict with "first" using v1: .data.b'
        assert status["details"]["causes"] == [
            {"reason": "FieldManagerConflict", "message": 'conflict with "first" using v1', "field": ".data.b"}
        ]
        forced = (await client.apply(f"{MAPS}/c", applied(b="2"), "second", force="true")).json()
        assert forced["data"] == {"a": "1", "b": "2"}
        owners = {entry["manager"]: entry["fieldsV1"] for entry in forced["metadata"]["managedFields"]}
        assert owners == {"first": {"f:data": {"f:a": {}}}, "second": {"f:data": {"f:b": {}}}}
        back = await client.apply(f"{MAPS}/c", applied(a="1"), "first")
        assert back.status_code == 200
        assert back.json()["data"] == {"a": "1", "b": "2"}, "the forced field is no longer the first one's to remove"

    talk(story)


def test_a_write_takes_a_field_from_who_applied_it(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.apply(f"{MAPS}/c", applied(a="1"), "first")
        await client.patch(f"{MAPS}/c", {"data": {"a": "2"}}, fieldManager="editor")
        answer = await client.apply(f"{MAPS}/c", applied(a="1"), "first")
        assert 'conflict with "editor" using v1: .data.a' in answer.json()["message"]

    talk(story)


def test_apply_merges_lists_with_keys_item_by_item(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        await client.apply(f"{PODS}/a", pod("a"), "first")
        other = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "finalizers": ["x.example/one"]},
            "spec": {"containers": [{"name": "app", "image": "other"}]},
        }
        answer = await client.apply(f"{PODS}/a", other, "second")
        assert '.spec.containers[name="app"].image' in answer.json()["message"]
        del other["spec"]["containers"][0]["image"]
        answer = await client.apply(f"{PODS}/a", other, "second")
        assert answer.status_code == 200
        assert answer.json()["spec"]["containers"][0]["image"] == "pause"
        del other["metadata"]["finalizers"]
        answer = await client.apply(f"{PODS}/a", other, "second")
        assert not answer.json()["metadata"].get("finalizers")

    talk(story)


def test_apply_needs_a_manager_and_knows_the_fields(talk: Talk) -> None:
    async def story(client: Any) -> None:
        nameless = await client.patch(f"{MAPS}/c", applied(a="1"), "apply")
        assert "fieldManager: Required value" in nameless.json()["message"]
        strict = await client.apply(f"{MAPS}/c", {**applied(a="1"), "dta": {}}, fieldValidation="Strict")
        assert 'unknown field "dta"' in strict.json()["message"]
        managed = applied(a="1")
        managed["metadata"]["managedFields"] = [{}]
        assert (await client.apply(f"{MAPS}/c", managed)).status_code == 400

    talk(story)


def test_yaml_is_taken_where_apply_is(talk: Talk) -> None:
    async def story(client: Any) -> None:
        body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {day: '2026-01-01'}\n"
        answer = await client.ask(
            "PATCH", f"{MAPS}/c", body, kind="application/apply-patch+yaml", fieldManager="me", force="true"
        )
        assert (answer.status_code, answer.json()["data"]) == (201, {"day": "2026-01-01"})

    talk(story)


def test_the_story_tells_who_changed_what_and_nothing_of_what_changed_nothing(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.apply(f"{MAPS}/c", applied(a="1"), "kubectl")
        await client.apply(f"{MAPS}/c", applied(a="1"), "kubectl")
        await client.patch(f"{MAPS}/c", {"data": {"a": "2"}}, fieldManager="editor")
        await client.ask("DELETE", f"{MAPS}/c")
        told = [(entry.subject, entry.message) for entry in client.cluster.journal.entries if entry.component == "user"]
        assert [message.partition(" by ")[0] for _, message in told] == ["Configured", "Configured", "Deleted"]
        assert {subject for subject, _ in told} == {"ConfigMap default/c"}
        assert told[1][1] == "Configured by editor"

    talk(story)
