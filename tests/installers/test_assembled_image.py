"""Images: one lock has one digest, a lost image comes back, and nothing of the sandbox is in it."""

from __future__ import annotations

import json
from pathlib import Path

import docker
import pytest
from bench import PROJECT, Known, Repo, environment_of_lock, ground_of, lock_request, recipe_of, repo_of, venv_request
from docker.errors import ImageNotFound

from installers.image import assembled, ensure_image, ensure_layers, image_config, notes_of, remove_image, tag_of
from installers.lock import lock
from installers.project_install import project, project_request
from installers.venv_layer import Wheel, make_venv, path_of, with_wheels
from installers.workshop import Workshop
from miner.core.errors import InfrastructureFault
from miner.core.records import BuildMode, Environment, Layer
from miner.sandbox.base_image import BaseImage
from miner.sandbox.image_archive import ImageConfig

BASE = BaseImage(
    image="base:1",
    digest="sha256:" + "b" * 64,
    config=ImageConfig(
        architecture="amd64",
        created=1,
        diff_ids=("sha256:" + "0" * 64,),
        notes=("debian",),
        env=("PATH=/bin", "LANG=C.UTF-8"),
        user="0",
    ),
    layers=(Layer(diff_id="sha256:" + "0" * 64, size=1),),
    packages="",
)
LAYER = Layer(diff_id="sha256:" + "1" * 64, size=1)


def config(*layers: Layer, **more) -> ImageConfig:
    return image_config(BASE, layers, ["note"] * len(layers), **more)


def test_configuration_of_an_image() -> None:
    run = json.loads(config(LAYER).json_bytes())
    assert run["config"] == {
        "Cmd": ["/bin/bash"],
        "Env": ["PATH=/opt/env/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"],
        "Labels": {},
        "StopSignal": "SIGKILL",
        "User": "1000:1000",
        "WorkingDir": "/testbed",
    }
    assert run["rootfs"]["diff_ids"] == ["sha256:" + "0" * 64, LAYER.diff_id]
    assert "Entrypoint" not in run["config"]


def test_variables_of_a_recipe_win_over_those_of_the_base_but_for_the_path() -> None:
    env = {"PATH": "/evil", "LANG": "de_DE.UTF-8", "B": "2", "A": "1=1"}
    assert json.loads(config(LAYER, env=env).json_bytes())["config"]["Env"] == [
        "PATH=/opt/env/bin:/usr/local/bin:/usr/bin:/bin",
        "A=1=1",
        "B=2",
        "LANG=de_DE.UTF-8",
    ]


def test_history_of_an_image_says_what_each_layer_is() -> None:
    assert notes_of([LAYER] * 3, has_build=False) == ("environment", "tree", "project")
    assert notes_of([LAYER] * 6, has_build=True) == ("ground", "ground", "environment", "build", "tree", "project")


def test_same_layers_have_one_id_and_other_layers_another() -> None:
    other = LAYER.model_copy(update={"diff_id": "sha256:" + "2" * 64})
    assert config(LAYER).image_id == config(LAYER).image_id
    assert config(LAYER, other).image_id != config(other, LAYER).image_id


def test_wheel_that_was_built_here_takes_the_place_of_its_package_in_the_lock() -> None:
    kept = "a==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab\n", "d==3 --hash=sha256:dd\n"
    wheel = Wheel(name="b-c", filename="b_c-2-py3-none-any.whl", sha256="ee")
    assert with_wheels(f"{kept[0]}b_c==2 \\\n    --hash=sha256:bb\n{kept[1]}", [wheel]) == (
        f"{kept[0]}{kept[1]}b-c @ file://{path_of(wheel)} --hash=sha256:ee\n"
    )


def test_tag_has_no_capitals() -> None:
    assert tag_of("pypi__Demo-1.0RC1", "sha256:0123456789abcdef") == "swe-miner/pypi__demo-1.0rc1:0123456789ab"


@pytest.mark.docker
@pytest.mark.index
def test_two_builds_of_one_lock_have_one_digest(workshop: Workshop) -> None:
    plan = lock_request(workshop, "pytest", "pytest-cov", "docopt")
    locked = lock(workshop, Known().memo(), ground_of(workshop), plan, name="", version=None)[-1]
    trails = [environment_of_lock(workshop, Known().memo(), plan, locked) for _ in range(2)]
    assert [fact.key.kind for fact in trails[0]] == ["install.lock", "install.env", "install.wheel", "install.env"]
    assert all(fact.ok for fact in trails[0])
    assert [fact.blobs for fact in trails[0]] == [fact.blobs for fact in trails[1]]
    assert trails[0][-1].payload["layer"]["size"] > 1_000_000


@pytest.mark.docker
@pytest.mark.index
def test_wheel_is_built_once_for_all_environments_and_days(workshop: Workshop) -> None:
    known = Known()
    for requirements in (("docopt",), ("docopt", "iniconfig")):
        plan = lock_request(workshop, *requirements)
        locked = lock(workshop, known.memo(), ground_of(workshop), plan, name="", version=None)[-1]
        assert environment_of_lock(workshop, known.memo(), plan, locked)[-1].ok
    kinds = [fact.key.kind for fact in known.facts]
    assert (kinds.count("install.wheel"), kinds.count("install.env")) == (1, 3)  # one for the build, two to compare


@pytest.mark.docker
@pytest.mark.index
def test_lock_with_a_wrong_hash_is_not_installed(workshop: Workshop) -> None:
    text = "iniconfig==2.0.0 --hash=sha256:" + "0" * 64 + "\n"
    seen = make_venv(workshop, workshop.base, venv_request(workshop, workshop.blobs.put(text.encode())))
    assert (seen.outcome, seen.network) == ("build-failed", True)
    assert "hash" in seen.payload["detail"].lower()


@pytest.fixture(scope="module")
def environment(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_in_mode(workshop, repo_of(PROJECT, tmp_path_factory.mktemp("case")), BuildMode.EDITABLE)


def environment_in_mode(workshop: Workshop, repo: Repo, mode: BuildMode) -> Environment:
    recipe, ground, memo = recipe_of(modes=(mode,), env={"ANSWER": "42"}), ground_of(workshop), Known().memo()
    plan = lock_request(workshop, *recipe.requirements)
    locked = lock(workshop, memo, ground, plan, name="demo", version=None)[-1]
    built = environment_of_lock(workshop, memo, plan, locked)[-1]
    request = project_request(plan, recipe, mode, built=built, tree=repo.tree)
    done = project(workshop, memo, ground, "pypi__demo-1.1", request, repo.pack)[-1]
    assert done.ok, done.payload
    return assembled(workshop, ground, recipe, locked=locked, built=built, installed=done)


@pytest.mark.docker
@pytest.mark.index
def test_image_that_was_removed_comes_back_with_the_same_id(
    workshop: Workshop, environment: Environment, docker_client: docker.DockerClient
) -> None:
    tag = ensure_image(workshop, environment, "pypi__demo-1.1")
    assert docker_client.images.get(tag).id == environment.image
    remove_image(docker_client, tag)
    with pytest.raises(ImageNotFound):
        docker_client.images.get(tag)
    remove_image(docker_client, tag)  # not there: no error
    assert ensure_image(workshop, environment, "pypi__demo-1.1") == tag
    assert docker_client.images.get(tag).id == environment.image


@pytest.mark.docker
@pytest.mark.index
def test_image_holds_the_repository_at_its_commit_and_nothing_of_the_sandbox(
    workshop: Workshop, environment: Environment
) -> None:
    with workshop.box(ensure_image(workshop, environment, "pypi__demo-1.1"), network=False) as box:

        def said(command: str, user: str | None = None) -> str:
            result = box.run(["sh", "-c", command], user=user)
            assert result.exit_code == 0, result.text
            return result.text

        assert said("git status --porcelain") == ""
        assert said("git status --porcelain", user="0:0") == ""
        assert said("git log --all --reflog --format=%s") == "Base\n"
        assert said("git remote; git stash list; git tag") == "", "the recipe knows no version"
        assert said("id -u; command -v python") == "1000\n/opt/env/bin/python\n"
        assert said("for tool in git patch ps kill tail bash; do command -v $tool || exit 1; done")
        assert said("env | grep -i -E 'proxy|cert|index|bundle|uv_' || true") == ""
        assert said("ls /opt /opt/build") == "/opt:\nbuild\nenv\n\n/opt/build:\n"
        assert said("cat /etc/pip.conf /etc/uv/uv.toml ~/.config/uv/uv.toml 2>/dev/null || true") == ""
        assert said("find /testbed /opt/env -not -user 1000 | head -3") == ""
        assert said("python -c 'import demo; print(demo.answer)'") == "41\n"
        assert said("echo $ANSWER") == "42\n"


@pytest.mark.docker
@pytest.mark.index
@pytest.mark.parametrize("mode", [BuildMode.NORMAL, BuildMode.COMPILED])
def test_project_is_installed_again_offline_after_a_change(workshop: Workshop, mode: BuildMode, tmp_path: Path) -> None:
    made = environment_in_mode(workshop, repo_of(PROJECT, tmp_path), mode)
    with workshop.box(ensure_image(workshop, made, "pypi__demo-1.1"), network=False) as box:
        box.put({"/testbed/src/demo/more.py": (b"", 0o644)})
        assert made.rebuild_cmd is not None
        again = box.run(["bash", "-c", made.rebuild_cmd])
        assert again.ok, again.text
        where = "testbed/src" if mode is BuildMode.COMPILED else "site-packages"
        assert where in box.run(["python", "-c", "import demo.more; print(demo.more.__file__)"], workdir="/").text
        assert box.run(["sh", "-c", "find /opt/build -not -user 1000"]).text == ""


@pytest.mark.docker
def test_lost_layer_is_a_fault_that_names_it(workshop: Workshop) -> None:
    lost = Layer(diff_id="sha256:" + "f" * 64, size=10)
    with pytest.raises(InfrastructureFault, match="f" * 64):
        ensure_layers(workshop, "test-lost", [lost], ["environment"])
