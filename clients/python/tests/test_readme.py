"""The examples of the README run, one after the other, against a server."""
from __future__ import annotations

import re
from typing import Any

from tests.served import ROOT, Case


class ReadmeTest(Case):
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
