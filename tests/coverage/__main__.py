"""`make api-coverage`: writes docs/api-coverage.md."""

from pathlib import Path

from tests.coverage.table import page

if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs/api-coverage.md").write_text(page())
