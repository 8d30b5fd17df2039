from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from index_server import IndexServer

from miner.core.errors import ConfigError, IndexUnreachable, InfrastructureFault
from miner.core.index_access import CA_VARIABLES
from miner.core.reasons import Reason
from miner.core.records import SourceFile
from miner.core.settings import Index
from miner.crawlers.index import IndexClient, choose_sdist, index_hosts
from miner.crawlers.interface import Refused


def the_file(index: IndexClient, name: str = "pkg") -> SourceFile:
    file = index.release_files(name).files[0]
    assert file.sha256 is not None
    assert file.uploaded_at is not None
    return SourceFile(
        filename=file.filename, url=file.url, sha256=file.sha256, size=file.size, uploaded_at=file.uploaded_at
    )


def test_entries_of_a_project_are_read_as_stated(server: IndexServer, index: IndexClient) -> None:
    server.release("My.Pkg", "1.0", {"setup.py": b""}, uploaded="2024-02-03T04:05:06.789Z", yanked="broken")
    server.release("My.Pkg", "1.0", archive=b"wheel", filename="my_pkg-1.0-py3-none-any.whl")
    answer = index.release_files("My.Pkg")
    assert server.requests == ["/simple/my-pkg/"]
    assert [(file.filename, file.kind, file.version) for file in answer.files] == [
        ("My.Pkg-1.0.tar.gz", "sdist", "1.0"),
        ("my_pkg-1.0-py3-none-any.whl", "wheel", "1.0"),
    ]
    assert answer.files[0].yanked
    assert answer.files[0].uploaded_at == datetime(2024, 2, 3, 4, 5, 6, 789000, tzinfo=UTC)


def test_unknown_package_is_a_value(index: IndexClient) -> None:
    assert not index.release_files("nosuch").known


def test_tar_gz_is_taken_before_zip_and_wheels_never(server: IndexServer, index: IndexClient) -> None:
    for filename in ("pkg-1.0.zip", "pkg-1.0.tar.bz2", "pkg-1.0.tar.gz", "pkg-1.0-py3-none-any.whl", "pkg-1.0.tar.Z"):
        server.release("pkg", "1.0", archive=b"x", filename=filename)
    files = index.release_files("pkg").files
    assert choose_sdist(files).filename == "pkg-1.0.tar.gz"  # type: ignore[union-attr]
    assert choose_sdist(tuple(file for file in files if file.kind == "wheel")) is None


@pytest.mark.parametrize("fault", ["500", "503", "429", "html", "garbage", "cut", "reset", "slow"])
def test_a_passing_fault_is_retried(server: IndexServer, index: IndexClient, fault: str) -> None:
    server.slow_s = 0.8
    server.release("pkg", "1.0", {"setup.py": b""})
    server.fail("/simple/pkg/", fault, times=2)
    assert index.release_files("pkg").known
    assert len(server.requests) == 3


@pytest.mark.parametrize("fault", ["500", "429", "html", "garbage", "cut"])
def test_a_lasting_error_of_the_index_is_a_fault_and_no_empty_project(
    server: IndexServer, index: IndexClient, fault: str
) -> None:
    server.release("pkg", "1.0", {"setup.py": b""})
    server.fail("/simple/pkg/", fault)
    with pytest.raises(InfrastructureFault) as caught:
        index.release_files("pkg")
    assert caught.value.reason is Reason.INDEX_ERROR
    assert len(server.requests) == 3


def test_a_stop_ends_the_wait_for_another_try(server: IndexServer, index_settings: Index, tmp_path: Path) -> None:
    server.fail("/simple/pkg/", "500")
    stopped = threading.Event()
    client = IndexClient(index_settings, tmp_path / "cache", wait_s=60.0, stopped=stopped)
    threading.Timer(0.2, stopped.set).start()
    with pytest.raises(InfrastructureFault):
        client.release_files("pkg")
    assert len(server.requests) <= 2


def test_a_refusal_is_not_tried_again(server: IndexServer, index: IndexClient) -> None:
    server.fail("/simple/pkg/", "403")
    with pytest.raises(InfrastructureFault, match="403"):
        index.release_files("pkg")
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["reset", "slow"])
def test_no_answer_is_an_unreachable_index(server: IndexServer, index: IndexClient, fault: str) -> None:
    server.slow_s = 0.8
    server.fail("/simple/pkg/", fault)
    with pytest.raises(IndexUnreachable):
        index.release_files("pkg")


def test_nothing_listens(tmp_path: Path) -> None:
    index = IndexClient(Index(url="http://127.0.0.1:9/simple/", tries=2), tmp_path, wait_s=0.01)
    with pytest.raises(IndexUnreachable, match=r"127\.0\.0\.1:9"):
        index.release_files("pkg")


def test_an_address_that_is_none_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(IndexUnreachable, match="not the address"):
        IndexClient(Index(url="nonsense", tries=9), tmp_path, wait_s=9).release_files("pkg")


def test_a_download_is_checked_and_cached(server: IndexServer, index: IndexClient) -> None:
    server.release("pkg", "1.0", {"setup.py": b"x"})
    file = the_file(index)
    path = index.download(file)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    assert index.download(file) == path
    assert server.requests.count("/files/pkg-1.0.tar.gz") == 1


def test_a_damaged_cache_is_not_believed(server: IndexServer, index: IndexClient) -> None:
    server.release("pkg", "1.0", {"setup.py": b"x"})
    file = the_file(index)
    path = index.download(file)
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    assert index.download(file).read_bytes() == good


@pytest.mark.parametrize("fault", ["cut", "shortened", "reset", "500", "404"])
def test_a_download_that_breaks_off_leaves_a_fault_and_no_file(
    server: IndexServer, index: IndexClient, tmp_path: Path, fault: str
) -> None:
    server.release("pkg", "1.0", {"setup.py": bytes(range(256)) * 64})
    file = the_file(index)
    server.fail("/files/", fault)
    with pytest.raises(InfrastructureFault):
        index.download(file)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
    server.heal()
    assert index.download(file).is_file()


def test_a_cut_download_is_tried_again(server: IndexServer, index: IndexClient) -> None:
    server.release("pkg", "1.0", {"setup.py": b"x" * 9000})
    server.fail("/files/", "cut", times=2)
    assert index.download(the_file(index)).is_file()


def test_another_file_than_announced_is_refused_after_a_second_look(server: IndexServer, index: IndexClient) -> None:
    server.release("pkg", "1.0", {"setup.py": b"x"})
    server.fail("/files/", "wrong")
    with pytest.raises(Refused) as caught:
        index.download(the_file(index))
    assert caught.value.reason is Reason.HASH_MISMATCH
    assert server.requests.count("/files/pkg-1.0.tar.gz") == 2


def test_another_file_than_announced_once_is_forgiven(server: IndexServer, index: IndexClient) -> None:
    server.release("pkg", "1.0", {"setup.py": b"x"})
    server.fail("/files/", "wrong", times=1)
    assert index.download(the_file(index)).is_file()


def test_more_bytes_than_announced_are_refused(server: IndexServer, index: IndexClient) -> None:
    server.release("pkg", "1.0", archive=b"x" * 5000, size=1000)
    with pytest.raises(Refused) as caught:
        index.download(the_file(index))
    assert caught.value.reason is Reason.HASH_MISMATCH


def test_a_file_above_the_limit_is_not_downloaded(server: IndexServer, index_settings: Index, tmp_path: Path) -> None:
    index = IndexClient(index_settings, tmp_path, max_bytes=1000, wait_s=0.01)
    server.release("pkg", "1.0", archive=b"x" * 5000)
    with pytest.raises(Refused) as caught:
        index.download(the_file(index))
    assert caught.value.reason is Reason.ARCHIVE_TOO_LARGE
    assert "/files/pkg-1.0.tar.gz" not in server.requests


def test_hosts_are_those_of_the_index_of_its_files_and_the_configured_ones(
    server: IndexServer, index: IndexClient, index_settings: Index
) -> None:
    server.release("pip", "1.0", archive=b"x", url="https://files.example/pip-1.0.tar.gz")
    settings = index_settings.model_copy(update={"extra_hosts": ("mirror.example",)})
    port = urlsplit(server.url).port
    assert index_hosts(index, settings) == (f"127.0.0.1:{port}", "files.example:443", "mirror.example")


def test_index_that_needs_a_login_is_refused_before_anything_is_installed(server: IndexServer, tmp_path: Path) -> None:
    settings = Index(url=server.url.replace("//", "//reader:s3cret@"))
    with pytest.raises(ConfigError, match="needs a login") as caught:
        index_hosts(IndexClient(settings, tmp_path), settings)
    assert "s3cret" not in str(caught.value)
    assert server.requests == []


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "PIP_CERT"])
def test_the_environments_ca_bundle_is_the_one_that_boxes_get(
    server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable in CA_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, "/nowhere/environment.pem")
    settings = Index(url=server.url.replace("http:", "https:"), tries=1)
    with pytest.raises(InfrastructureFault, match=r"environment\.pem"):
        IndexClient(settings, tmp_path, wait_s=0.01).release_files("pkg")


def test_index_of_the_environment_is_asked(
    server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.release("pkg", "1.0", archive=b"x")
    monkeypatch.setenv("UV_DEFAULT_INDEX", server.url)
    assert IndexClient(Index(), tmp_path).release_files("pkg").known
    assert server.requests == ["/simple/pkg/"]


def test_a_configured_ca_bundle_wins_over_the_environment(
    server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/environment.pem")
    settings = Index(url=server.url.replace("http:", "https:"), ca_bundle=Path("/nowhere/chosen.pem"), tries=1)
    with pytest.raises(InfrastructureFault, match=r"chosen\.pem"):
        IndexClient(settings, tmp_path, wait_s=0.01).release_files("pkg")


def test_a_login_is_sent_to_the_index_and_stands_in_no_fact_and_no_message(server: IndexServer, tmp_path: Path) -> None:
    server.release("pkg", "1.0", archive=b"x")
    settings = Index(url=server.url.replace("//", "//reader:s%40cret@"), tries=1)
    index = IndexClient(settings, tmp_path, wait_s=0.01)
    assert index.download(the_file(index)).is_file()
    assert server.logins == ["reader:s@cret", "reader:s@cret"]
    assert "cret" not in index.release_files("pkg").model_dump_json()
    server.fail("/simple/", "500")
    with pytest.raises(InfrastructureFault) as caught:
        index.release_files("pkg")
    assert "cret" not in str(caught.value)


@pytest.mark.index
def test_the_real_index_states_digest_size_and_upload_time(tmp_path: Path) -> None:
    answer = IndexClient(Index(), tmp_path).release_files("iniconfig")
    sdist = next(file for file in answer.files if file.filename == "iniconfig-2.0.0.tar.gz")
    assert sdist.sha256 is not None
    assert sdist.size == 4646
    assert sdist.uploaded_at is not None
    assert sdist.uploaded_at.date().isoformat() == "2023-01-07"
