"""Fixtures that all tests share: a small tokenizer and tiny untrained checkpoints of every kind.

The weights are random: every code path runs in milliseconds, and the outputs mean nothing.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Before torch is imported: on a busy machine, OpenMP threads that spin while waiting cost four fifths of the speed.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Models that other programs store on this computer must not affect a test.
os.environ["HF_HUB_CACHE"] = "/nowhere"

import hypothesis
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from streamlit.testing.v1 import AppTest

    from transformer import Checkpoint, Tokenizer

gc.disable()  # while tests are collected, of which nothing is garbage; see pytest_collection_finish
ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 300.0  # seconds that a test waits for what takes seconds on an idle machine
# Compiled files are kept, even if the environment forbids it: otherwise every worker and every server of a test
# would compile everything again, and each worker would rewrite the assertions of all tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples in every run, and no deadline, because a busy machine must not make a test fail.
hypothesis.settings.register_profile(
    "glassformer", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("glassformer")

TINY_SENTENCES = (
    "The cat sat on the mat.",
    "The dog sleeps under the table.",
    "She is reading a book in the garden.",
    "We went to the sea, and the sea was cold.",
    "I do not know where he lives.",
    "He never drinks coffee in the evening.",
    "My brother bought a small red car.",
    "The children are playing in the street.",
    "Do you want to eat with us tonight?",
    "It is raining, so take your umbrella.",
    "That was not what I wanted to say.",
    "The train arrives at half past nine.",
    "They walked home because the bus was late.",
    "Can you open the window, please?",
    "The old man told us a long story.",
    "I love you more than you think.",
    "Le chat est assis sur le tapis.",
    "Le chien dort sous la table.",
    "Elle lit un livre dans le jardin.",
    "Nous sommes allés à la mer, et la mer était froide.",
    "Je ne sais pas où il habite.",
    "Il ne boit jamais de café le soir.",
    "Mon frère a acheté une petite voiture rouge.",
    "Les enfants jouent dans la rue.",
    "Veux-tu manger avec nous ce soir ?",
    "Il pleut, alors prends ton parapluie.",
    "Ce n'était pas ce que je voulais dire.",
    "Le train arrive à neuf heures et demie.",
    "Ils sont rentrés à pied parce que le bus était en retard.",
    "Peux-tu ouvrir la fenêtre, s'il te plaît ?",
    "Le vieil homme nous a raconté une longue histoire.",
    "Je t'aime plus que tu ne le penses.",
)

# Every position scheme but "none", both positions of LayerNorm, both activations, tied and untied.
TINY_CONFIGS: dict[str, dict[str, Any]] = {
    "tiny-translator": {
        "kind": "encoder-decoder", "d_model": 32, "n_heads": 2, "d_ff": 48, "n_encoder_layers": 2,
        "n_decoder_layers": 2, "positions": "sinusoidal", "norm": "pre", "activation": "relu", "tie_embeddings": False,
    },
    "tiny-gpt": {
        "kind": "decoder-only", "d_model": 24, "n_heads": 2, "d_ff": 40, "n_encoder_layers": 0, "n_decoder_layers": 2,
        "positions": "learned", "norm": "pre", "activation": "gelu", "tie_embeddings": False,
    },
    "tiny-bert": {
        "kind": "encoder-only", "d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 0,
        "positions": "rotary", "norm": "post", "activation": "gelu", "tie_embeddings": True, "n_segments": 2,
    },
    "tiny-sentiment": {
        "kind": "encoder-only", "d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 0,
        "positions": "relative", "norm": "pre", "activation": "relu", "tie_embeddings": True,
        "class_names": ("negative", "positive"),
    },
}  # fmt: skip


def pytest_report_header() -> str:
    from tests.nights import DAY

    return f"cases drawn for GLASSFORMER_DAY={DAY}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests marked nightly or real, unless ``-m`` or the command line names them.

    A failed test at a real server is repeated once, and the summary names it: on a busy machine, a click may hit a page
    while it is redrawn.

    With ``-n``, what takes longest begins first: a worker that began it last would be busy while others have nothing
    left to do.
    """
    from tests.nights import leave_to_the_night

    leave_to_the_night(items)
    # Not by -m in addopts: any other -m, such as README's, would replace it and select the nightly tests again.
    for mark in ("nightly", "real"):
        if mark not in config.option.markexpr and not any("::" in asked for asked in config.args):
            config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(mark)])
            items[:] = [item for item in items if not item.get_closest_marker(mark)]
    for item in items:
        if item.nodeid.startswith(("tests/browser/", "tests/benchmarks/", "tests/web/")):
            item.add_marker(pytest.mark.flaky(reruns=1))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not unit_of(item.nodeid).startswith(LONG))


LONG = ("tests/browser", "tests/web", "tests/pages/test_walk.py")  # begun first: each keeps a worker busy for minutes


def unit_of(nodeid: str) -> str:
    """Return which tests run on the same worker in turn: those of a file, or of a long folder.

    The browser's are two units, which take about as long: each starts an app and a Chromium, whose first page costs as
    much as three later ones. The web page's are one, because torch takes half a minute to export its graphs.
    """
    folder, _, name = nodeid.split("::")[0].rpartition("/")
    if folder == "tests/browser":
        return f"{folder} {'a-le' if name < 'test_li' else 'li-z'}"
    return folder if folder in LONG else f"{folder}/{name}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from xdist.scheduler import LoadFileScheduling

    class Units(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    return Units(config, log)


def pytest_collection_finish() -> None:
    """Exempt from garbage collection what stays: the tests and all that is imported."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # a session of AppTest is thousands of objects; looking more often costs 4 %
    gc.enable()


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    """A byte-pair tokenizer of 400 entries, learned from a few dozen English and French sentences."""
    from transformer import Tokenizer

    return Tokenizer.train(TINY_SENTENCES, 400)


@pytest.fixture(scope="session")
def checkpoints_folder(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Iterator[Path]:
    """A folder with ``tiny-translator``, ``tiny-gpt``, ``tiny-bert`` and ``tiny-sentiment``.

    From the first use on, GLASSFORMER_CHECKPOINTS names it, so that the app also finds only these checkpoints.
    """
    import torch

    import transformer

    folder = tmp_path_factory.mktemp("checkpoints")
    for seed, (name, values) in enumerate(TINY_CONFIGS.items()):
        config = transformer.ModelConfig(vocabulary_size=tiny_tokenizer.vocabulary_size, max_length=96, **values)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = transformer.build_model(config)
            with torch.no_grad():  # initial values of 0 and 1 would hide errors
                for parameter in model.parameters():
                    parameter += 0.1 * torch.randn_like(parameter)
        card = f"# {name}\n\nRandom weights, made for the tests; it has learned nothing.\n"
        transformer.save(folder / name, model, tiny_tokenizer, card=card)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
        yield folder


@pytest.fixture
def own_folder(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the tiny checkpoints, which a test may change; the app finds only these."""
    folder = shutil.copytree(checkpoints_folder, tmp_path / "own")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    return folder


@pytest.fixture
def shipped_folder(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the app find the checkpoints of the repository, whatever a test before has set; return them."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    return ROOT / "checkpoints"


@pytest.fixture(scope="session")
def tiny_checkpoint(checkpoints_folder: Path) -> Callable[[str], Checkpoint]:
    """Return ``tiny_checkpoint(kind)``: "translator", "gpt", "bert" or "sentiment", loaded only once."""
    import transformer

    loaded: dict[str, Checkpoint] = {}

    def get(kind: str) -> Checkpoint:
        name = f"tiny-{kind.removeprefix('tiny-')}"
        if name not in loaded:
            loaded[name] = transformer.load(checkpoints_folder / name)
        return loaded[name]

    return get


@pytest.fixture(scope="session")
def guest_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return ``guest_folder("hf-yarn", "vit")``, a folder with these tiny checkpoints, written once."""
    from tests.foreign_checkpoints import any_checkpoint

    @cache
    def written(*names: str) -> Path:
        folder = tmp_path_factory.mktemp("guests")
        for name in names:
            any_checkpoint(name, folder)
        return folder

    return written


@pytest.fixture(scope="session")
def guest(guest_folder: Callable[..., Path]) -> Callable[[str], Checkpoint]:
    """Return ``guest("hf-gpt2")``, a tiny third-party checkpoint, written and loaded once and shared."""
    import transformer

    return cache(lambda name: transformer.load(guest_folder(name) / name))


@pytest.fixture(scope="session")
def families_folder(guest_folder: Callable[..., Path]) -> Path:
    """A folder with a tiny checkpoint of each of ``FOREIGN``, in Hugging Face's layout."""
    from tests.foreign_checkpoints import FOREIGN

    return guest_folder(*FOREIGN)


@pytest.fixture(scope="session", autouse=True)
def quick_app_tests() -> Iterator[None]:
    """Speed up three things that ``AppTest`` does in each run of a page, and let it wait longer.

    Streamlit reads the metadata of all installed packages: here once. It polls every millisecond whether the page is
    finished, which interrupts the page: here it waits for the page's thread. And it begins each run as a fresh
    server, which takes ``pages/`` for the navigation until ``app.py`` has run: here as a server that has served before.
    Its own time limit is three seconds, which a page may exceed while other programs run: here ``PATIENCE``. It reads
    this project's settings in the folder in which the first page is opened: here before any test changes the folder.
    """
    if "streamlit" not in sys.modules:
        yield
        return
    from streamlit.components.v2 import manifest_scanner
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.testing.v1 import app_test, local_script_runner

    from ui.server.streamlit_private import config

    assert config.get_option("server.address") == "127.0.0.1", "the settings are those of this project"

    class KnowsItsNavigation(PagesManager):
        def __init__(self, *args: object, **more: object) -> None:
            super().__init__(*args, **more)
            PagesManager.uses_pages_directory = False

    asks_whether_it_is_finished = local_script_runner.require_widgets_deltas

    def wait(runner: local_script_runner.LocalScriptRunner, timeout: float) -> None:
        runner._script_thread.join(max(timeout, PATIENCE))
        # with 0, AppTest reports a timeout
        asks_whether_it_is_finished(runner, timeout if runner.script_stopped() else 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        patch.setattr(local_script_runner, "require_widgets_deltas", wait)
        patch.setattr(app_test, "PagesManager", KnowsItsNavigation)
        yield


@pytest.fixture
def public_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the server public, and restore afterwards what a process sets only once."""
    from transformer.runs import inputs, recording_size
    from ui.compute import loading
    from ui.server.streamlit_private import config
    from ui.shell import admission

    set_once = (admission.seats, admission._know_hosts, loading.limit_texts)
    hosts = config.get_option("server.allowedHosts")
    files = config.get_option("server.maxUploadSize")
    monkeypatch.setenv("GLASSFORMER_PUBLIC", "1")
    monkeypatch.setattr(inputs, "MAX_CHARACTERS", inputs.MAX_CHARACTERS)
    monkeypatch.setattr(recording_size, "MAX_BYTES", recording_size.MAX_BYTES)
    for setting in set_once:
        setting.cache_clear()
    yield
    for setting in set_once:
        setting.cache_clear()
    config.set_option("server.maxUploadSize", files)
    config.set_option("server.allowedHosts", hosts)


@pytest.fixture
def open_app(checkpoints_folder: Path) -> Callable[..., AppTest]:
    """Return ``open_app("decoding", checkpoint=…, sentence=…)``, the page as an address opens it.

    Models that fill in blanks read the sentence as the test gives it, unless the test says ``masked``.
    """

    def opened(page: str, **address: object) -> AppTest:
        if "sentence" in address and "bert" in str(address.get("checkpoint")):
            address.setdefault("masked", "none")
        return open_by_address(page, address)

    return opened


def open_by_address(
    page: str, address: Mapping[str, Any], *, state: Mapping[str, Any] | None = None, timeout: float = PATIENCE
) -> AppTest:
    """``state`` is set in the session before the page runs; ``timeout`` is in seconds for each run."""
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=timeout)
    if page != "overview":  # which opens without a name; requesting another page first would run a page twice
        app.switch_page(f"pages/{page}.py")
    for name, value in address.items():
        app.query_params[name] = value
    for name, value in (state or {}).items():
        app.session_state[name] = value
    return app.run()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One Chromium for the whole process: Playwright's synchronous interface opens once per thread."""
    from tests.harness.chromium import chromium as opened  # only tests that use a browser need Playwright

    with opened() as browser:
        yield browser
