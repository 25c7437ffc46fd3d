"""The published package: generated files, size, types, and the wheel."""
from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path
from typing import Any

from tests.served import LIMIT, ROOT, Case, coppice

HERE = ROOT / "clients" / "python"
PACKAGE = HERE / "coppice_client"
sys.path.insert(0, str(HERE / "tools"))

import build_backend  # noqa: E402
import generate  # noqa: E402


class PackageTest(Case):
    def test_generated_files_are_those_of_the_description(self) -> None:
        for name, text in generate.modules().items():
            self.assertEqual((PACKAGE / name).read_text(), text, f"{name}: run tools/generate.py")

    def test_every_test_has_a_time_limit(self) -> None:
        suites: list[Any] = [unittest.defaultTestLoader.discover(str(HERE / "tests"), top_level_dir=str(HERE))]
        while suites:
            for item in suites.pop():
                if isinstance(item, unittest.TestSuite):
                    suites.append(item)
                else:
                    self.assertIsInstance(item, Case)

    def test_a_test_that_hangs_fails(self) -> None:
        program = f"""if True:
            import threading, unittest
            from tests import served

            class Hangs(served.Case):
                def test(self):
                    threading.Event().wait()

            print(served.Server({self.folder()!r}).port, flush=True)
            served.LIMIT = 0.1
            unittest.main()"""
        run = subprocess.run([sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True,
                             timeout=LIMIT / 2, env={**os.environ, "COPPICE_BIN": coppice()})
        self.assertEqual(run.returncode, 1)
        self.assertIn("Hangs.test: not done", run.stderr)
        with self.assertRaises(OSError):  # its server is gone
            socket.create_connection(("127.0.0.1", int(run.stdout)))

    @unittest.skipUnless(shutil.which("mypy"), "no mypy")
    def test_types(self) -> None:
        run = subprocess.run(["mypy", "--strict", "--cache-dir", self.folder(), "coppice_client", "tools",
                              str(ROOT / "examples/python/agent.py"), str(ROOT / "examples/python/chat.py")],
                             cwd=HERE, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_wheel_is_installed_and_used(self) -> None:
        wheels = os.environ.get("COPPICE_WHEELS") or self.folder()
        if "COPPICE_WHEELS" not in os.environ:
            build_backend.build_wheel(wheels)
        (wheel,) = Path(wheels).glob("coppice_client-*.whl")
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
        self.assertIn("coppice_client/py.typed", names)
        self.assertIn("coppice_client-0.1.0.dist-info/LICENSE", names)
        folder = self.folder()
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        subprocess.run([python, "-m", "pip", "install", "--no-index", "--quiet", str(wheel)], check=True, env=env)
        program = ("import sys, coppice_client; print(coppice_client.__version__);"
                   "print(coppice_client.Store(sys.argv[1]).create('x').commit()['seq'])")
        out = subprocess.run([python, "-c", program, self.serve().url], check=True, capture_output=True, text=True,
                             env=env, cwd=folder).stdout
        self.assertEqual(out, f"{build_backend.project()['version']}\n1\n")

    def test_the_build_is_the_same_bytes_again(self) -> None:
        a, b = self.folder(), self.folder()
        name = build_backend.build_wheel(a)
        build_backend.build_wheel(b)
        self.assertEqual((Path(a) / name).read_bytes(), (Path(b) / name).read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue((Path(folder) / build_backend.build_sdist(folder)).exists())


if __name__ == "__main__":
    unittest.main()
