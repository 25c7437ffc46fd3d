"""The examples of the client's README run, one after the other, against a server; and those of the project's README and
docs/http.md."""
from __future__ import annotations

import contextlib
import io
import re
from typing import Any

from tests.served import ROOT, Case


class ReadmeTest(Case):
    def test_the_example_of_the_guide_runs(self) -> None:
        text = (ROOT / "docs" / "http.md").read_text()
        block = text.split("```python\n")[1].split("```")[0].replace("http://127.0.0.1:7070", self.serve().url)
        said = block.rsplit("#", 1)[1].strip()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            names: dict[str, Any] = {}
            exec(compile(block, "http.md", "exec"), names)
            names["session"]._transport.close()
        self.assertEqual(out.getvalue().strip(), said)

    def test_the_lines_of_the_project_run(self) -> None:
        block = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
        self.assertEqual(len(block.splitlines()), 6)
        names: dict[str, Any] = {}
        exec(compile(block.replace("http://127.0.0.1:7070", self.serve().url), "README.md", "exec"), names)
        self.assertEqual(names["resumed"].state, {"asked": 1})
        self.assertEqual(len(names["resumed"].context), 1)
        names["store"].close()

    def test_its_examples_run(self) -> None:
        text = (ROOT / "clients" / "python" / "README.md").read_text()
        blocks = [(text[:m.start()].count("\n") + 1, m.group(1))
                  for m in re.finditer(r"```python\n(.*?)```", text, re.S)]
        self.assertGreater(len(blocks), 5)
        names: dict[str, Any] = {"url": self.serve().url}
        for line, block in blocks:
            with self.subTest(line=line):
                exec(compile("\n" * line + block, "README.md", "exec"), names)
        names["store"].close()
