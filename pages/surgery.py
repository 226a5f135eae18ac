"""Surgery: which heads matter? Every head is silenced once; then cut what you like, and see what the model says."""

import streamlit as st

from transformer.interventions.experiment import Experiment, experiment
from transformer.interventions.head_importance import importance_by_chunks, remove_one_head_per_row
from transformer.runs.edits import ablate_head, mean_ablate_head
from ui.lab.effects import picture_and_answer, show_answers, show_numbers, show_steps
from ui.lab.experiments import experiment_with
from ui.shell import choice
from ui.shell.page import page
from ui.show.figures import show_formula, show_snippet, show_source
from ui.show.living_picture import edited_picture
from ui.words.model_terms import output_bias
from ui.words.texts import counted
from views.surgery import edit_list
from views.surgery.jobs_and_importance import jobs_and_importance
from views.surgery.operations import choices, importance, importance_map, measure, more_edits

with page("surgery", needs=("stack", "kind", "layer", "head")) as p:
    text, focus = p.text, p.focus
    edit_list.say_what_was_dropped(edit_list.keep_fitting(p.checkpoint.config), text)
    found = importance(p)
    specs = edit_list.specs()

    click, what = choices(p)
    picture, beside = picture_and_answer()
    with picture:
        importance_map(p, found, click=click, what=what)
        jobs_and_importance(p, found)
        measuring = st.container()
    with beside:
        st.markdown(f"**{text['edits']}**")
        if specs:
            edit_list.show(text)
        else:
            st.caption(text["none"])
        effect = experiment_with(p.run, specs)
        show_answers(p, effect)
        show_numbers(p, effect)

    with st.container(border=True):
        more_edits(p)
    if specs:
        st.subheader(text["depth"], anchor=False)
        show_steps(p, effect)
        with choice.fold(text["picture"], icon=":material/movie:", key="edited_picture") as opened:
            if opened.open:
                edited_picture(p, specs)
                st.caption(text["picture_hint"])
    show_formula(
        text["formula"]
        .replace("%TOKENS%", str(len(effect.asked.ids)))
        .replace("%BIAS%", output_bias(p.checkpoint.model)),
        caption=text["formula_caption"].format(tokens=counted(len(effect.asked.ids), "token"), heads=len(found.heads)),
    )
    show_snippet(
        "surgery",
        f"{p.preamble}\nfrom transformer.interventions.experiment import experiment\n"
        f"from transformer.interventions.head_importance import head_importance\n\n"
        f"edits = transformer.edits_from(checkpoint, {list(specs)!r})\n"
        "effect = experiment(trace, edits)\n"
        f"print(effect.change, effect.mean_kl)  # {effect.change:.6g} {effect.mean_kl:.6g}\n"
        "print(effect.answer_after.text)\n"
        f'print(head_importance(trace).table("{focus.stack}", "{focus.kind}"))\n',
    )
    show_source(ablate_head, mean_ablate_head, experiment, Experiment, importance_by_chunks, remove_one_head_per_row)
    with measuring:
        measure(p, found)
