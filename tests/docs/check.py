"""Holds what the documents and the forge's workflows say against the repository.

Links and their anchors exist; every `make` target that is named exists, and every file of the repository; the README's
configuration table has exactly the function's variables with their defaults, and its orphan table exactly its kinds;
docs/plan.md has all of the policy for people; workflows pin their actions by commit and run nothing but make, apart
from the steps that are named here.
"""

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
SET_UP = ("rustup toolchain install ", 'gh release create "$GITHUB_REF_NAME" ')
"""What a workflow runs besides make: the toolchain before it, and the release after it."""


def tracked(pattern: str) -> list[pathlib.Path]:
    """Files of the repository, new ones included."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in told.splitlines() if (ROOT / line).is_file()]


def prose(text: str) -> str:
    """Markdown without its code blocks."""
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors that the forge makes of headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(text), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 1
        while slug in found:
            slug = f"{slug.removesuffix(f'-{number - 1}')}-{number}"
            number += 1
        found.add(slug)
    return found


def broken_links(path: pathlib.Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path.read_text())) + re.findall(r'(?:src|href)="([^"]+)"', path.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        other = (path.parent / file).resolve() if file else path
        if not other.exists():
            yield f"links to {target}, which is not there"
        elif anchor and other.suffix == ".md" and anchor not in anchors(other.read_text()):
            yield f"links to {target}, and there is no such heading"


def unknown_targets(path: pathlib.Path) -> Iterator[str]:
    known = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in set(re.findall(r"(?:`|run: |\$ |^|&& )make ([a-z][a-z-]+)", path.read_text(), re.MULTILINE)) - known:
        yield f"names `make {target}`, and the Makefile has no such target"


def table(readme: str, heading: str) -> dict[str, list[str]]:
    """The rows of the first table under a heading, by their first cell's code word."""
    below = readme.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in below.splitlines() if line.startswith("| ")]
    return {word: row for row in rows for word in re.findall(r"`([^`]+)`", row[0])}


def configuration_differs(readme: str) -> Iterator[str]:
    code = "".join(path.read_text() for path in sorted((ROOT / "src/config").glob("*.rs")))
    code += (ROOT / "src/log.rs").read_text().split("#[cfg(test)]")[0]
    known = {word for word in re.findall(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"', code) if word not in ("AWS_REGION", "AWS_LAMBDA_LOG_LEVEL", "CARGO_CRATE_NAME")}
    rows = table(readme, "Configuration")
    for variable in sorted(known ^ set(rows)):
        yield f"configuration table: {variable} is only in the " + ("code" if variable in known else "table")
    defaults = re.findall(r'\.(?:seconds|tag_key)\(\s*"(\w+)",\s*"?([^",]+)"?,?', code)
    defaults += re.findall(r'\.count\(\s*"(\w+)"[^)]*\)\s*\.map_or\((\d+),', code)
    if len(defaults) < 7:
        yield "configuration table: the defaults in src/config are written in another way now; tests/docs/check.py reads too few"
    for variable, default in defaults:
        if variable in rows and f"`{default}`" not in rows[variable][1]:
            yield f"configuration table: {variable} is {default} by default, the table says {rows[variable][1]}"


def kinds_differ(readme: str) -> Iterator[str]:
    sources = "".join(path.read_text() for path in sorted((ROOT / "src/reap").glob("*.rs")))
    known = set(re.findall(r'pub const [A-Z_]+: &str = "([a-z-]+)";', sources)) | set(re.findall(r'fn kind\(&self\) -> &\'static str \{\s*"([a-z-]+)"', sources))
    rows = table(readme, "What it deletes, and what it never does")
    for kind in sorted(known ^ {word for word in rows if word.islower()}):
        yield f"orphan table: {kind} is only in the " + ("code" if kind in known else "table")


def missing_files(path: pathlib.Path) -> Iterator[str]:
    """Places of the repository that a document names: from its root anywhere, and Rust files by their end too."""
    text = path.read_text()
    for place in sorted(set(re.findall(r"(?<![\w/.~*-])((?:src|events|infra|tests|docs)/[\w/.*-]*[\w/*])", text))):
        if not any(ROOT.glob(place.rstrip("/"))):
            yield f"names {place}, which isn't there"
    for place in sorted(set(re.findall(r"`([\w/-]+\.rs)`", text))):
        if not (ROOT / place).exists() and not (ROOT / "src" / place).exists():
            yield f"names {place}, which is neither there nor in src"


def permissions_differ(plan: str) -> Iterator[str]:
    for action in re.findall(r'"[a-z0-9]+:(\w+)"', (ROOT / "infra/iam/plan-policy.json").read_text()):
        if not re.search(rf"\b{action}`", plan):
            yield f"what reading needs: {action} is in infra/iam/plan-policy.json and not here"


def loose_steps(path: pathlib.Path) -> Iterator[str]:
    text = path.read_text()
    for action, comment in re.findall(r"uses: (\S+)(.*)", text):
        if not action.startswith("./") and not (re.search(r"@[0-9a-f]{40}$", action) and re.search(r"# v\d", comment)):
            yield f"{action} is not pinned by a commit with its version beside it"
    for command in re.findall(r"run: (.+)", text):
        if not command.startswith(("make ", *SET_UP)):
            yield f"runs what make doesn't: {command}"


def main() -> int:
    readme = (ROOT / "README.md").read_text()
    wrong = [("README.md", text) for text in (*configuration_differs(readme), *kinds_differ(readme))]
    wrong += [("docs/plan.md", text) for text in permissions_differ((ROOT / "docs/plan.md").read_text())]
    documents, workflows = tracked("*.md"), tracked(".github/workflows/*.yml")
    for path in documents:
        wrong += [(path.relative_to(ROOT), text) for text in (*broken_links(path), *unknown_targets(path))]
        if path.parent in (ROOT, ROOT / "docs"):
            wrong += [(path.relative_to(ROOT), text) for text in missing_files(path)]
    for path in workflows:
        wrong += [(path.relative_to(ROOT), text) for text in (*loose_steps(path), *unknown_targets(path))]
    for path, text in wrong:
        print(f"{path}: {text}")
    print(f"{len(documents)} documents and {len(workflows)} workflows: {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
