"""Training loop on a CPU, a GPU, or several under ``torchrun`` (by Hugging Face Accelerate)."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from transformer.disk.whole_files import remove_unfinished
from transformer.files.checkpoints import save, save_weights
from transformer.files.model_card import HISTORY
from transformer.files.snapshots import snapshot_file
from transformer.models import Model
from transformer.runs.batches import length_batches, packed_batches
from transformer.training.objectives import OBJECTIVES, Classification, MaskedTokenNextSentence, Objective, length_of
from transformer.training.recipe import Recipe
from transformer.training.run_state import load_state, random_states, save_state, set_random_states, write_history
from transformer.training.schedule import learning_rate
from transformer.training.start import initial_model, run_corpus, run_tokenizer, set_own_dropout, training_objective
from transformer.training.validation import dev_accuracy, dev_bleu, dev_loss, dev_text_tasks

Report = Callable[[dict[str, float]], None]
_RECENT = {"recent_loss": 0.0, "recent_predictions": 0}  # since the last row of the history; early states lack them
_COUNTED = ("step", "target_tokens", "seconds", "history", "best_score", *_RECENT)


class Trainer:
    """Trains one recipe in one run directory.

    The run directory holds ``state.pt`` (everything needed to resume), ``best/`` (the checkpoint with the best dev
    score so far), ``snapshots/`` and ``history.csv``. Restarted in the same directory, a run resumes where it was saved
    and ends with the same weights as one that was never stopped: bitwise, on the same machine with the same number of
    processes.
    """

    def __init__(self, recipe: Recipe, *, data: str | Path, run_directory: str | Path, report: Report | None = None):
        from accelerate import Accelerator

        self.recipe = recipe
        self.directory = Path(run_directory)
        self.report = report or (lambda row: None)
        self.accelerator = Accelerator(
            mixed_precision="bf16" if recipe.precision == "bfloat16" else "no",
            cpu=not torch.cuda.is_available(),  # explicit, or processes on CPUs would not find each other
        )
        self.corpus = run_corpus(recipe, data)
        torch.manual_seed(recipe.seed)
        self.tokenizer = run_tokenizer(recipe, self.corpus, self.directory, self.accelerator)
        model = initial_model(recipe, self.tokenizer)
        objective = training_objective(recipe, model, self.tokenizer)
        optimizer = torch.optim.AdamW(
            objective.parameters(),
            lr=0.0,
            betas=(0.9, 0.98),
            eps=1e-9,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self.train_examples = self._encode(type(objective), self.corpus.train, limit=True)
        self.dev_examples = self._encode(OBJECTIVES[recipe.task], self.corpus.dev, limit=False)
        self.objective, self.optimizer = self.accelerator.prepare(objective, optimizer)
        decay = recipe.average_decay
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay)) if decay else None
        self.step, self.target_tokens, self.seconds = 0, 0, 0.0
        self.recent_loss, self.recent_predictions = 0.0, 0  # since the last row of the history
        self.history: list[dict[str, float]] = []
        self.best_score = -math.inf
        self._resume()

    def _encode(self, objective: type[Objective], texts: list[tuple], *, limit: bool) -> list[tuple]:
        examples = objective.encode(self.tokenizer, texts)
        bound = self.recipe.max_sequence_length if limit else self.recipe.model.max_length
        kept = [example for example in examples if length_of(example) <= bound]
        if not kept:
            split = "training" if limit else "dev"
            raise ValueError(
                f"no {split} text of {self.recipe.corpus} has at most {bound} tokens: nothing to work with"
            )
        return kept

    # ---- the loop -----------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The weights that are evaluated and saved: the moving average if there is one."""
        return self.average.module if self.average is not None else self._trained_model

    @property
    def _own_objective(self) -> Objective:
        return self.accelerator.unwrap_model(self.objective)

    @property
    def _trained_model(self) -> Model:
        return self._own_objective.model

    def run(self, *, stop_after: int | None = None) -> None:
        """Train up to ``recipe.steps``, or save and stop at step ``stop_after`` (a planned interruption)."""
        last = self.recipe.steps if stop_after is None else min(stop_after, self.recipe.steps)
        if self.step == 0:
            self._snapshot()
        started = time.monotonic()
        for epoch, indices in self._batches_from(self.step):
            if self.step >= last:
                break
            self.step += 1
            loss, predictions, norm = self._train_step(indices)
            self.recent_loss, self.recent_predictions = self.recent_loss + loss, self.recent_predictions + predictions
            self.target_tokens += predictions
            evaluates = self.step % self.recipe.evaluate_every == 0 or self.step == self.recipe.steps
            if evaluates or self.step % self.recipe.log_every == 0:
                row = {
                    "step": self.step,
                    "epoch": epoch,
                    "target_tokens": self.target_tokens,
                    "seconds": round(self.seconds + time.monotonic() - started, 1),
                    "learning_rate": learning_rate(self.recipe, self.step),
                    "train_loss": self.recent_loss / max(1, self.recent_predictions),
                    "gradient_norm": norm,
                }
                self.recent_loss, self.recent_predictions = 0.0, 0
                if evaluates:
                    row |= self._evaluate()
                self.history.append(row)
                self.report(row)
            if self.step in self.recipe.snapshots:
                self._snapshot()
            if self.step % self.recipe.save_every == 0 or self.step == last:
                self.seconds += time.monotonic() - started
                started = time.monotonic()
                self._save()

    def _batches_from(self, step: int) -> Iterator[tuple[int, list[int]]]:
        """Yield this process's batches forever, after ``step`` steps."""
        lengths = [length_of(example) for example in self.train_examples]
        batched = packed_batches if self.recipe.task == "packed-next-token" else length_batches
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        epoch = 0
        while True:
            batches = batched(lengths, self.recipe.batch_tokens, seed=self.recipe.seed, epoch=epoch)
            n_steps = len(batches) // world
            if n_steps == 0:
                raise ValueError(f"{len(batches)} batches are too few for {world} processes; lower batch_tokens")
            for index in range(step, n_steps):
                yield epoch, batches[index * world + rank]
            step = max(0, step - n_steps)
            epoch += 1

    def _train_step(self, indices: list[int]) -> tuple[float, int, float]:
        self.objective.train()
        restart = self.recipe.restart_at
        self._own_objective.progress = min(1.0, self.step / (restart or self.recipe.steps))
        if self.recipe.restart_dropout is not None and self.step > restart:
            set_own_dropout(self._trained_model, self.recipe.restart_dropout)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.recipe, self.step)
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + self.step)
        batch = self._own_objective.collate([self.train_examples[index] for index in indices], generator)
        device = self.accelerator.device
        with self.accelerator.autocast(), _attention_for_short_sentences(device):
            loss, predictions = self.objective({name: tensor.to(device) for name, tensor in batch.items()})
        self.optimizer.zero_grad()
        if predictions:
            self.accelerator.backward(loss / predictions)
            norm = self.accelerator.clip_grad_norm_(self.objective.parameters(), self.recipe.gradient_clip)
            self.optimizer.step()
            if self.average is not None:
                self.average.update_parameters(self._trained_model)
        totals = torch.tensor([float(loss.detach()), float(predictions)], device=device)
        loss, predictions = self.accelerator.reduce(totals).tolist()  # summed over all processes
        return loss, int(predictions), float(norm) if predictions else 0.0

    # ---- scores, snapshots, saving ------------------------------------------------------------------------------

    def _evaluate(self) -> dict[str, float]:
        """Return dev loss and the score by which the best checkpoint is chosen; higher is better."""
        model = self.model.eval()
        objective = OBJECTIVES[self.recipe.task](model)
        loss = dev_loss(objective, self.dev_examples, self.recipe.batch_tokens)
        if self.recipe.task in ("translation", "text-to-text"):
            measure = dev_bleu if self.recipe.task == "translation" else dev_text_tasks
            score = measure(model, self.tokenizer, self.corpus.dev, self.recipe.evaluate_sentences)
        elif isinstance(objective, Classification):
            score = dev_accuracy(objective, self.dev_examples, self.recipe.batch_tokens)
        else:
            score = -loss
        if score > self.best_score and self.accelerator.is_main_process:
            self.best_score = score
            save(self.directory / "best", model, self.tokenizer)
            write_history(self.directory / "best" / HISTORY, self.history)
        scores = {"dev_loss": loss, "dev_perplexity": math.exp(loss), "dev_score": score}
        if isinstance(objective, MaskedTokenNextSentence):
            scores["next_sentence_accuracy"] = dev_accuracy(objective, self.dev_examples, self.recipe.batch_tokens)
        return scores

    def _snapshot(self) -> None:
        if self.step in self.recipe.snapshots and self.accelerator.is_main_process:
            save_weights(self.directory / snapshot_file(self.step), self.model)

    def _save(self) -> None:
        random = random_states(self.accelerator)
        if not self.accelerator.is_main_process:
            return
        state = {
            **{name: getattr(self, name) for name in _COUNTED},
            "begun_with": self._begun_with(),
            "model": self._trained_model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "random": random,
        }
        save_state(self.directory, state)

    def _resume(self) -> None:
        if self.accelerator.is_main_process:
            remove_unfinished(self.directory)
        state = load_state(self.directory)
        if state is None:
            return
        begun_with, now = state.get("begun_with", {}), self._begun_with()
        if different := [name for name in begun_with if begun_with[name] != now[name]]:
            raise ValueError(
                f"{self.directory} holds a run that was started with another {', '.join(different)}; take another run "
                f"directory, or go on with what it was begun with"
            )
        self._trained_model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        set_random_states(state["random"], self.accelerator.process_index)
        state = _RECENT | state
        for name in _COUNTED:
            setattr(self, name, state[name])

    def _begun_with(self) -> dict[str, str]:
        """Return the settings that must not change when a run resumes, unlike steps, intervals and the like."""
        recipe = self.recipe
        return {"task": recipe.task, "model": recipe.model.to_json(), "corpus": self.corpus.digest}


def _attention_for_short_sentences(device: torch.device) -> AbstractContextManager[None]:
    """Use plain attention for short sentences on a CPU.

    For fifteen tokens, matrix products are faster than the blockwise kernel, whose backward pass in bfloat16 took more
    than half of a training step.
    """
    return sdpa_kernel(SDPBackend.MATH) if device.type == "cpu" else nullcontext()
