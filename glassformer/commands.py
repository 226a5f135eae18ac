"""Command ``web`` of ``python -m transformer``, which needs the program, not only the library."""

import sys
from pathlib import Path
from typing import Any

from glassformer import APP
from transformer.commands.command_line import argument, command


@command(
    argument("out", metavar="FOLDER", help="where index.html and all that it needs go"),
    argument(
        "--checkpoints", nargs="+", default=["en-fr"], metavar="NAME", help="names or folders; the first one opens"
    ),
    argument("--app", default="", metavar="ADDRESS", help="address of a Glassformer app that the page links to"),
    argument("--single-file", action="store_true", help="write one HTML file, which opens without a server"),
)
def web(out: str, checkpoints: list[str], app: str, single_file: bool) -> None:
    """Write a static site that runs models in the browser, without a server."""
    if str(APP) not in sys.path:
        sys.path.insert(0, str(APP))  # where ``charts``, ``ui`` and ``web`` are; a command has its process to itself
    try:
        from web.site import write_single_file, write_site
    except ModuleNotFoundError as error:
        if error.name not in ("onnx", "onnxscript"):
            raise
        raise ValueError(
            f"the package {error.name} is missing, which exports models; "
            "in a copy of the repository: pip install -r requirements-web.txt"
        ) from error
    from transformer.files.names import resolve

    shipped = APP / "checkpoints"
    folders = [shipped / name if (shipped / name).is_dir() else resolve(name) for name in checkpoints]
    more: dict[str, Any] = {"app": app, "progress": lambda line: print(line, file=sys.stderr)}
    if single_file:
        file = Path(out) / "glassformer.html"
        print(f"{file}  {write_single_file(file, folders, **more):,} bytes: it opens without a server")
        return
    sizes = write_site(Path(out), folders, **more)
    print(f"{out}  {len(sizes)} files, {sum(sizes.values()):,} bytes: any web space can serve it")
