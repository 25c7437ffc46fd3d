"""A build backend (PEP 517) that needs only the standard library: the package is Python files only.

The wheel is the same bytes wherever it is built. project() reads the few fields of pyproject.toml.
"""
from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
TIME = (1980, 1, 1, 0, 0, 0)  # the earliest of a zip file


def project() -> dict[str, str]:
    """Return the text fields of [project]. Python 3.10 has no parser of TOML."""
    section = (HERE / "pyproject.toml").read_text().split("[project]")[1].split("\n[")[0]
    return dict(re.findall(r'^([a-z-]+) = "(.*)"$', section, re.M))


def module() -> str:
    """Return the name of the package as it is imported, and of its folder."""
    return project()["name"].replace("-", "_")


def files() -> list[Path]:
    """Return the files of the package."""
    return sorted(p for p in (HERE / module()).iterdir() if p.suffix == ".py" or p.name == "py.typed")


def licence() -> bytes:
    """Return the licence: of the repository, or of an unpacked source distribution."""
    return next(p for p in (HERE / "LICENSE", HERE.parent.parent / "LICENSE") if p.exists()).read_bytes()


def requires() -> str:
    """Return the lines of the metadata for dependencies, of which there is one at most."""
    found = re.findall(r'^dependencies = \["(.*)"\]$', (HERE / "pyproject.toml").read_text(), re.M)
    return "".join(f"Requires-Dist: {name}\n" for name in found)


def metadata() -> str:
    """Return the core metadata, with the README."""
    p = project()
    return (f"Metadata-Version: 2.1\nName: {p['name']}\nVersion: {p['version']}\nSummary: {p['description']}\n"
            f"License: Apache-2.0\nRequires-Python: {p['requires-python']}\n{requires()}"
            f"Classifier: License :: OSI Approved :: Apache Software License\nClassifier: Typing :: Typed\n"
            f"Description-Content-Type: text/markdown\n\n{(HERE / 'README.md').read_text()}")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Write the wheel, and return its name."""
    p = project()
    stem = f"{module()}-{p['version']}"
    held = {f"{module()}/{f.name}": f.read_bytes() for f in files()}
    held[f"{stem}.dist-info/METADATA"] = metadata().encode()
    held[f"{stem}.dist-info/LICENSE"] = licence()
    held[f"{stem}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: coppice\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    record = ""
    for name, data in held.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    held[f"{stem}.dist-info/RECORD"] = (record + f"{stem}.dist-info/RECORD,,\n").encode()
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in held.items():
            info = zipfile.ZipInfo(name, TIME)
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            out.writestr(info, data)
    return wheel


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Write the source distribution, and return its name."""
    p = project()
    stem = f"{module()}-{p['version']}"
    held = {f"{module()}/{f.name}": f.read_bytes() for f in files()}
    for name in ("pyproject.toml", "README.md", "tools/build_backend.py"):
        held[name] = (HERE / name).read_bytes()
    held["LICENSE"], held["PKG-INFO"] = licence(), metadata().encode()
    with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as out:
        for name, data in held.items():
            info = tarfile.TarInfo(f"{stem}/{name}")
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return f"{stem}.tar.gz"
