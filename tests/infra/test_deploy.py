"""What is changed of the template for the emulator, and what is uploaded."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from infra.local.deploy import linked, zipped
from infra.local.template import for_emulator

if TYPE_CHECKING:
    from pathlib import Path

TLS_ONLY = {
    "Action": "sqs:*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    "Effect": "Deny",
    "Principal": {"AWS": "*"},
}
SENDING = {"Action": "sqs:SendMessage", "Effect": "Allow", "Resource": "arn"}


def _policy(*statements: object) -> dict[str, object]:
    return {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {"PolicyDocument": {"Statement": list(statements)}},
    }


def test_a_reference_to_a_secret_is_its_arn_as_on_aws() -> None:
    template = {
        "Resources": {
            "Auth": {"Type": "AWS::SecretsManager::Secret", "Properties": {}},
            "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {}},
            "User": {"Type": "X", "Properties": {"Of": [{"Ref": "Auth"}, {"Ref": "Table"}]}},
        }
    }

    mended = for_emulator(template)

    assert mended["Resources"]["User"]["Properties"]["Of"] == [
        {"Fn::GetAtt": ["Auth", "Id"]},
        {"Ref": "Table"},
    ]


def test_only_the_demand_for_tls_is_dropped_from_policies() -> None:
    template = {"Resources": {"Both": _policy(TLS_ONLY, SENDING), "One": _policy(TLS_ONLY)}}

    mended = for_emulator(template)

    assert mended["Resources"] == {"Both": _policy(SENDING)}


def test_everything_else_of_the_template_stays() -> None:
    template = {
        "Rules": {"CheckBootstrapVersion": {}},
        "Parameters": {"RootUrl": {"Type": "String"}},
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": True}}},
    }

    mended = for_emulator(template)

    assert mended == {key: template[key] for key in ("Parameters", "Resources")}


def test_a_function_is_uploaded_without_compiled_files(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text("x = 1\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "handler.pyc").write_bytes(b"")

    with zipfile.ZipFile(io.BytesIO(zipped(tmp_path))) as archive:
        assert archive.namelist() == ["handler.py"]


def test_a_linked_layer_makes_the_real_one_importable(tmp_path: Path) -> None:
    real = tmp_path / "real" / "python"
    real.mkdir(parents=True)
    (real / "only_in_the_layer.py").write_text("WORD = 'found'\n")
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(io.BytesIO(linked(real.parent))).extractall(unpacked)
    [site] = (unpacked / "python" / "lib").glob("*/site-packages")
    code = f"import site; site.addsitedir({str(site)!r}); import only_in_the_layer as layer"

    answer = subprocess.run(
        [sys.executable, "-I", "-c", f"{code}; print(layer.WORD)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.strip() == "found"
