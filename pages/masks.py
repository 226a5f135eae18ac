"""Masks: what if it may look ahead, or at padding? An editor on the map itself, with the answer before and after."""

import streamlit as st

from charts.canvas.attention_maps import predicted_rows
from charts.canvas.mask_editor import mask_editor
from transformer.attention import attention_weights
from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.masks import combined_mask
from transformer.runs import mask_edits
from ui.lab.effects import picture_and_answer, show_answers, show_numbers, show_steps
from ui.lab.experiments import experiment_with
from ui.shell.choice import chosen_option
from ui.shell.page import page
from ui.show.drawings import show_mask_editor
from ui.show.figures import show_formula, show_snippet, show_source
from ui.show.score_formula import score_formula
from views.masks import editor
from views.masks.mask_effects import difference, notes, padding_sandbox

VIEWS = ("difference", "steps", "padding")

with page("masks", needs=("stack", "kind", "layer", "head")) as p:
    text, focus = p.text, p.focus
    own = p.trace.attention(focus.stack, focus.layer, focus.kind)
    words = editor.words_in(own)
    recipe = editor.controls(p, own, words)
    specs = recipe.specs(own, words)
    effect = experiment_with(p.run, specs)
    now = effect.changed.attention(focus.stack, focus.layer, focus.kind)

    picture, beside = picture_and_answer()
    with picture:
        height = 340 if focus.lesson else 400  # so that its legend stays in sight below the lesson's bar
        labels = predicted_rows(p.trace, focus.kind)
        drawn = mask_editor(now, head=focus.head, own=own.allowed, shifted_labels=labels, height=height)
        show_mask_editor(drawn, key="mask editor", means=editor.paint)
    with beside:
        show_answers(p, effect)
        show_numbers(p, effect)
        editor.take_back(p, recipe)
        notes(p, recipe, now)

    views = VIEWS[:2] if p.reads_pictures else VIEWS  # all pictures have one size, so nothing is padded
    view = chosen_option(text, "view", views, key="masks view")
    if view == "difference":
        difference(p, own, now)
    elif view == "steps":
        show_steps(p, effect)
    else:
        padding_sandbox(p)

    rule = score_rule(p.checkpoint, focus.stack, focus.layer, focus.kind)
    score = score_formula(rule, r"q_i \cdot k_j", added=" + b_{ij}" if rule.added and not rule.is_of_the_paper else "")
    if rule.window is not None:
        st.caption(text["window"].format(window=rule.window))
    show_formula(
        text["formula"].replace("%SCORE%", score),
        caption=text["formula_caption"].format(
            rows=len(now.query), columns=len(now.key), blocked=int((~now.allowed).sum()), cells=now.allowed.size
        ),
    )
    show_snippet(
        "masks",
        f"{p.preamble}\nfrom transformer.interventions.experiment import experiment\n\n"
        f"edits = transformer.edits_from(checkpoint, {list(specs)!r})\n"
        "effect = experiment(trace, edits)\n"
        f"print(effect.change, effect.mean_kl)  # {effect.change:.6g} {effect.mean_kl:.6g}\n"
        f'print(effect.changed.attention("{focus.stack}", {focus.layer}, "{focus.kind}").allowed.astype(int))\n'
        "print(effect.answer_after.text)\n",
    )
    show_source(
        attention_weights,
        combined_mask,
        mask_edits.no_causal_mask,
        mask_edits.no_padding_mask,
        mask_edits.sliding_window,
    )
