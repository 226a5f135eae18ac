"""The static site: a folder that any web server can serve, and that contacts no other host."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from charts.canvas.module import canvas_colours, packed_module
from transformer.disk.plain_files import parse_toml
from transformer.disk.whole_files import write_bytes, write_text
from transformer.files.checkpoints import Checkpoint, load
from ui.words.texts import common, languages, page_text, use_language
from web.figures import description_of, opening_of, recorded_picture
from web.graphs import WEIGHTS, graphs_of
from web.lessons import bar_texts, lessons_for

FOLDER = Path(__file__).parent
RUNTIME = "onnxruntime.wasm.gz"
SCRIPTS = ("site", "worker")
# Files that open the page offline; files of models are cached as they are loaded (web/source/files.js).
_SHELL = ("index.html", "site.js", "worker.js", "canvas.bin", "LICENSES.txt")
_INLINE = {"canvas": "canvas.bin", "page": "site.js", "worker": "worker.js"}
# What the page may load: as a folder its own files, as a single file only what it contains.
_FOLDER_POLICY = (
    "default-src 'none'; "
    "script-src 'self' 'wasm-unsafe-eval' blob:; "
    "worker-src 'self' blob:; "
    "connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; "
    "media-src blob:; "
    "base-uri 'none'; "
    "form-action 'none'"
)
_FILE_POLICY = (
    "default-src 'none'; "
    "script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; "
    "worker-src blob:; "
    "connect-src blob:; "
    "style-src 'unsafe-inline'; "
    "img-src data: blob:; "
    "media-src blob:; "
    "base-uri 'none'; "
    "form-action 'none'"
)
_LICENSES = ("web/LICENSES.txt",)


def write_site(
    folder: Path,
    checkpoints: Sequence[Path],
    *,
    app: str = "",
    progress: Callable[[str], None] = lambda _line: None,
) -> dict[str, int]:
    """Write the site with these checkpoints to ``folder``; return the size of every file in bytes.

    Args:
        folder: The output folder. Files of an earlier site are replaced.
        checkpoints: Folders of checkpoints; the page opens with the first.
        app: Address of a Glassformer app that the page links to, if any.
        progress: Called with a message before each slow step.

    Raises:
        CheckpointError: A folder is not a checkpoint.
        ValueError: The page cannot run a model of this kind.
    """
    spoken = tuple(languages())
    folder.mkdir(parents=True, exist_ok=True)
    models = []
    for path in checkpoints:
        checkpoint = load(path)
        progress(f"exporting {checkpoint.name} …")
        models.append(_write_model(folder / "models" / checkpoint.name, checkpoint, spoken))
    runtime = (FOLDER / RUNTIME).read_bytes()
    texts = {one: _texts(one) for one in spoken}
    site = {"app": app, "models": models, "texts": texts, "runtime": _listed(RUNTIME, runtime)}
    site["lessons"] = lessons_for([model["checkpoint"] for model in models], spoken, links_to_app=bool(app))
    colours = f"const COLOURS = {json.dumps(canvas_colours())};\n"
    for script in SCRIPTS:
        write_text(folder / f"{script}.js", colours + (FOLDER / f"{script}.bundle.js").read_text(encoding="utf-8"))
    write_bytes(folder / RUNTIME, runtime)
    write_bytes(folder / "canvas.bin", packed_module())
    licences = [(FOLDER.parent / name).read_text(encoding="utf-8") for name in _LICENSES]
    write_text(folder / "LICENSES.txt", "\n".join(licences))
    write_text(folder / "index.html", _page(site, _FOLDER_POLICY, '<script type="module" src="site.js"></script>'))
    version = hashlib.sha256(b"".join((folder / name).read_bytes() for name in _SHELL)).hexdigest()[:16]
    worker = (FOLDER / "source" / "service_worker.js").read_text(encoding="utf-8")
    kept = json.dumps({"version": version, "files": _SHELL})
    write_text(folder / "service_worker.js", f"const SHELL = {kept};\n{worker}")
    return {
        file.relative_to(folder).as_posix(): file.stat().st_size for file in sorted(folder.rglob("*")) if file.is_file()
    }


def write_single_file(file: Path, checkpoints: Sequence[Path], *, app: str = "", **more: Any) -> int:
    """Write the site as one HTML file that opens without a server; return its size in bytes.

    A page of ``file:`` can load neither modules nor other files, so the file contains all of them.

    Args:
        file: The output file.
        checkpoints: As in ``write_site``.
        app: As in ``write_site``.
        **more: ``progress`` of ``write_site``.
    """
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_site(folder, checkpoints, app=app, **more)
        site = _site_in((folder / "index.html").read_text(encoding="utf-8"))
        for listed, path in [
            (site["runtime"], folder / RUNTIME),
            *(
                (one, folder / "models" / model["checkpoint"] / one["name"])
                for model in site["models"]
                for one in model["files"]
            ),
        ]:
            listed["content"] = _base64(path.read_bytes())
        for model in site["models"]:
            del model["recorded"]  # for a model that could not be loaded
        site |= {name: _base64((folder / path).read_bytes()) for name, path in _INLINE.items()}
        site["licences"] = (folder / "LICENSES.txt").read_text(encoding="utf-8")
        start = (FOLDER / "single_file.js").read_text(encoding="utf-8")
        page = _page(site, _FILE_POLICY, f'<script type="module">\n{start}</script>')
    write_text(file, page)
    return file.stat().st_size


def _texts(language: str) -> dict[str, Any]:
    with use_language(language):
        masked = {f"masked_{name}": common(f"masked.{name}") for name in ("word", "none")}
        page = page_text("overview")
        output = {"masked_said": page["masked_word"], "empty_answer": page["empty_answer"]}
        return bar_texts() | masked | output | parse_toml((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _page(site: dict[str, Any], policy: str, start: str) -> str:
    """Return the page with ``site`` as JSON that cannot end a script; ``start`` starts the page."""
    data = json.dumps(site, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    description = escape(site["texts"]["en"]["description"], quote=True)
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    for name, text in (("policy", policy), ("start", start), ("style", style), ("description", description)):
        page = page.replace(f"{{{{{name}}}}}", text)
    return page.replace("{{site}}", data)  # last, because it contains third-party text


def _site_in(page: str) -> dict[str, Any]:
    return json.loads(page.split('id="site">', 1)[1].split("</script>", 1)[0])


def _write_model(folder: Path, checkpoint: Checkpoint, spoken: tuple[str, ...]) -> dict[str, Any]:
    """Write the files of one model; return its entry in the page's list."""
    folder.mkdir(parents=True, exist_ok=True)
    graphs = graphs_of(checkpoint, checkpoint.path)
    described = description_of(checkpoint, spoken)
    described["graphs"] = {graph.stack: {"inputs": graph.inputs, "outputs": graph.outputs} for graph in graphs}
    packed = {f"{graph.stack}.onnx.gz": graph.onnx for graph in graphs}
    packed["model.json.gz"] = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
    packed["tokenizer.json.gz"] = (checkpoint.path / "tokenizer.json").read_bytes()
    listed = []
    for name, content in packed.items():
        small = gzip.compress(content, mtime=0)
        write_bytes(folder / name, small)
        listed.append(_listed(name, small))
    small, begin = _packed_weights((checkpoint.path / WEIGHTS).read_bytes())
    write_bytes(folder / f"{WEIGHTS}.gz", small)
    listed.append(_listed(f"{WEIGHTS}.gz", small) | {"split": begin})
    recorded = {}
    for one in spoken:
        with use_language(one):
            write_bytes(folder / f"recorded-{one}.bin", recorded_picture(checkpoint))
        recorded[one] = f"models/{checkpoint.name}/recorded-{one}.bin"
    entry = {"checkpoint": checkpoint.name, "kind": checkpoint.config.kind, "files": listed, "recorded": recorded}
    entry |= {"picture": described["picture"], "classes": described["classes"]}
    return entry | opening_of(checkpoint, spoken)


def _packed_weights(content: bytes) -> tuple[bytes, int]:
    """Compress a safetensors file; return it and where its numbers begin.

    All high bytes of the numbers stand before all low ones, since signs and exponents repeat and the rest is noise:
    that makes the file a twelfth smaller. The browser puts them together again (web/source/files.js).
    """
    begin = 8 + int.from_bytes(content[:8], "little")
    numbers = content[begin:]
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    return packer.compress(content[:begin] + numbers[1::2] + numbers[0::2]) + packer.flush(), begin


def _listed(name: str, content: bytes) -> dict[str, Any]:
    """Return the entry of a file: its name, its size, and the hash that a download is checked against."""
    return {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
