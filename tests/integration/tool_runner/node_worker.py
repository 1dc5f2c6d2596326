"""Runs `node entry.mjs` as the keeper does: a job on descriptor 3, an outcome on 4."""

import fcntl
import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NODE = Path(__file__).parents[3] / "services" / "tool_runner" / "sandboxes" / "node"
_SECONDS = 30


def why_not() -> str:
    """Returns what keeps these tests from running here; "" where nothing does."""
    if not shutil.which("node"):
        return "needs Node 20 or newer"
    if not (NODE / "node_modules").is_dir():
        return f"needs its packages: npm ci --prefix {NODE}"
    return ""


needs_node = pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")


@dataclass(frozen=True)
class Ran:
    """`outcome` is the JSON that was left; `result` its result, as a value."""

    outcome: dict[str, Any]
    stdout: str
    stderr: str

    @property
    def result(self) -> Any:
        return json.loads(self.outcome["result"])

    @property
    def error(self) -> str:
        error = self.outcome["error"]
        return f"{self.outcome['reason']}: {error['type']}: {error['message']}"

    @property
    def traceback(self) -> str:
        return str(self.outcome["error"]["traceback"])


def run(source: str, arguments: dict[str, Any] | None = None, **job: Any) -> Ran:
    """A call of `f` unless the job says otherwise."""
    whole = {
        "mode": "call",
        "source": source,
        "function": "f",
        "arguments": arguments or {},
        "environment": {},
        "agent_state": "",
        "client": False,
        "limits": {"result": 1 << 20},
        **job,
    }
    read_job, write_job = os.pipe()
    read_outcome, write_outcome = os.pipe()
    theirs = [_high(read_job), _high(write_outcome)]
    # 3 and 4 whatever they were here.
    script = f'exec "$0" "$1" 3<&{theirs[0]} 4>&{theirs[1]}'
    command = ["bash", "-c", script, "node", str(NODE / "entry.mjs")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, pass_fds=theirs, stdout=pipe, stderr=pipe, cwd="/tmp") as process:
        for descriptor in theirs:
            os.close(descriptor)
        body = json.dumps(whole).encode()
        with open(write_job, "wb") as feed:
            feed.write(len(body).to_bytes(4, "big") + body)
        # While what it prints is read: a full pipe holds it back.
        with ThreadPoolExecutor(1) as aside, open(read_outcome, "rb") as file:
            outcome = aside.submit(file.read)
            stdout, stderr = process.communicate(timeout=_SECONDS)
            left = outcome.result()
    assert int.from_bytes(left[:4], "big") == len(left) - 4
    return Ran(json.loads(left[4:]), stdout.decode(), stderr.decode())


def _high(descriptor: int) -> int:
    """The same, out of the way of 3 and 4."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return copy


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed one for api.test, that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "the proxy")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("api.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return certificate, secret
