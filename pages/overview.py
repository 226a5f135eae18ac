"""Overview: the sentence moving through the model, the model as blocks, and its output."""

from ui.page.below import below_the_picture
from ui.page.living_picture import living_picture
from ui.page.page import page
from views.overview import overview_sections as sections

with page("overview", strip=False) as p:
    p.say_notes()
    sections.answer(p)
    living_picture(p)
    sections.blocks(p)
    below_the_picture(lambda: sections.more(p))
