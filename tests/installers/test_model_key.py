"""The key is in nothing that is said or kept; certificates and proxies are the machine's."""

from __future__ import annotations

import logging
import ssl
import traceback
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from desk_bench import Bench, asking
from tiny_endpoint import KEY, Said, TinyEndpoint, completion, error

from installers.models.desk import desk_of
from installers.models.interface import RequestRefused, Trouble
from installers.models.kept import TRY
from installers.models.listing import names_listed
from installers.models.openai_model import OpenAIModel
from miner.core.errors import ConfigError, ModelFault
from miner.core.memo import utc_now
from miner.core.reasons import Reason
from miner.core.settings import Endpoint, load_settings


@pytest.fixture
def server() -> Iterator[TinyEndpoint]:
    with TinyEndpoint() as server:
        yield server


def model_of(server: TinyEndpoint) -> OpenAIModel:
    return OpenAIModel(Endpoint(), server.environ)


# The key


@pytest.mark.parametrize(
    "said",
    [
        Said(error(f"Incorrect API key provided: {KEY}"), 401),
        Said(error("x" * 280 + KEY), 500),
        Said(f"<html>{KEY}</html>".encode(), 200),
        Said(b"x" * 70 + KEY.encode(), 200),
        Said(b"", 302, {"Location": f"http://127.0.0.1/?key={KEY}"}),
        Said(error(f"{KEY}: no"), 400),
        Said(('{"error": {"message": "' + "".join(f"\\u{ord(one):04x}" for one in KEY) + '"}}').encode(), 403),
    ],
    ids=["login", "at-the-cut", "html", "at-the-cut-of-html", "location", "refused", "escaped"],
)
def test_the_key_is_in_no_error(server: TinyEndpoint, said: Said, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = lambda _: said
    with pytest.raises((Trouble, RequestRefused)) as raised:
        model_of(server).complete(asking())
    told, seen = "", raised.value
    while seen is not None:
        told, seen = f"{told}{seen!r}{seen}{vars(seen)}", seen.__cause__ or seen.__context__
    for start in range(0, len(KEY) - 9):
        assert KEY[start : start + 10] not in told
    assert KEY not in caplog.text


def test_the_key_is_in_no_reply_and_in_nothing_that_is_kept(
    server: TinyEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"id": KEY, "function": {"name": KEY, "arguments": {"a": KEY}}}
    server.script = lambda _: Said(completion({"content": f"it is {KEY}", "tool_calls": [call], "refusal": KEY}))
    bench = Bench(tmp_path)
    settings = load_settings(overrides=["run.max_cost=1", "prices.small.input=1", "prices.small.output=1"], environ={})
    environ = {**server.environ, "OPENAI_MODEL": "small"}
    desk = desk_of(settings, bench.spending, "r", blobs=bench.blobs, environ=environ)
    assert desk is not None
    assert bench.ask(desk).reply.text == "it is [key]"
    server.script = lambda _: Said(error(f"no {KEY}"), 401)
    with pytest.raises(Trouble):
        bench.ask(desk, ordinal=1)
    assert [fact.outcome for fact in bench.facts(TRY)] == ["ok", "model-login"]
    bench.ledger.close()
    kept = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    kept += [bench.blobs.get(path.name.removesuffix(".zst")) for path in (tmp_path / "blobs").rglob("*.zst")]
    assert len(kept) == 4, "the ledger, a request, what was replied, and an error"
    assert not any(KEY.encode() in data for data in kept)


# Where the endpoint is, and who is trusted


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:1/v1",
        "ftp://host/v1",
        "https://me:secret@host/v1",
        "http://",
        "http://host:port/v1",
        "https://host/v1?api-key=secret",
        "https://host/v1#secret",
        "https://host/v1?",
    ],
)
def test_an_address_that_is_none_is_an_error_of_the_configuration(url: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL") as error:
        OpenAIModel(Endpoint(), {"OPENAI_BASE_URL": url})
    assert "secret" not in str(error.value)


def test_a_key_that_is_none_is_not_repeated(server: TinyEndpoint) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as error:
        OpenAIModel(Endpoint(), {**server.environ, "OPENAI_API_KEY": "sk-pläntéd\nX: y"})
    assert "sk-" not in str(error.value)


def test_certificates_that_cannot_be_read_are_an_error_of_the_configuration(
    server: TinyEndpoint, tmp_path: Path
) -> None:
    (tmp_path / "bad.pem").write_text("this is no certificate")
    for endpoint, environ in (
        (Endpoint(ca_bundle=tmp_path / "none.pem"), {}),
        (Endpoint(ca_bundle=tmp_path / "bad.pem"), {}),
        (Endpoint(), {"SSL_CERT_FILE": str(tmp_path / "none.pem")}),
    ):
        with pytest.raises(ConfigError, match=r"certificates in .*pem"):
            OpenAIModel(endpoint, {**server.environ, **environ})


def test_the_machines_proxy_is_used(server: TinyEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = server.environ["OPENAI_BASE_URL"].removesuffix("/v1")
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", proxy)
    environ = {**server.environ, "OPENAI_BASE_URL": "http://models.invalid/v1"}
    assert OpenAIModel(Endpoint(), environ).complete(asking()).text == "hello"
    assert server.headers[0]["host"] == "models.invalid"


@pytest.mark.parametrize("proxy", [" http://me:secret@bad host:1", "ftp://secret@host", "http://me:secret@host:port"])
def test_a_proxy_that_is_none_shows_no_login_and_costs_nothing(
    server: TinyEndpoint, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(Trouble, match="HTTP_PROXY") as fault:
        model_of(server).complete(asking())
    assert (fault.value.reason, fault.value.free) == (Reason.MODEL_UNREACHABLE, True)
    assert "secret" not in "".join(traceback.format_exception(fault.value))
    with pytest.raises(ModelFault) as unwell:
        names_listed(Endpoint(), server.environ, 5.0)
    assert "secret" not in "".join(traceback.format_exception(unwell.value))


def _certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return a new certificate for 127.0.0.1 that signs itself, and what a server shows it with."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]),
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(utc_now() - timedelta(days=1))
        .not_valid_after(utc_now() + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "server.pem", folder / "server.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(public, private)
    return public, shown


def test_a_server_is_asked_if_the_settings_or_the_environment_trust_it(tmp_path: Path) -> None:
    public, shown = _certificate(tmp_path)
    with TinyEndpoint(shown) as server:
        for endpoint, environ in (
            (Endpoint(ca_bundle=public), {}),
            (Endpoint(), {"REQUESTS_CA_BUNDLE": str(public)}),
        ):
            assert OpenAIModel(endpoint, {**server.environ, **environ}).complete(asking()).text == "hello"
            assert names_listed(endpoint, {**server.environ, **environ}, 5.0) == {"small"}
        with pytest.raises(ModelFault, match="CERTIFICATE_VERIFY_FAILED"):
            names_listed(Endpoint(), server.environ, 5.0)
        with pytest.raises(Trouble, match="CERTIFICATE_VERIFY_FAILED") as fault:
            model_of(server).complete(asking())
        assert (fault.value.reason, fault.value.free) == (Reason.MODEL_UNREACHABLE, True)
        assert len(server.bodies) == 2
