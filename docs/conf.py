"""Build the site: Sphinx with the PyData theme, numpydoc, a gallery of the scripts in examples/, pages in Markdown.

Formulas become MathML, which browsers typeset themselves: MathJax would have to be fetched from another site.
"""

import re
import warnings
from pathlib import Path

import matplotlib as mpl

import ksparse

mpl.use("Agg")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")  # plt.show() in the scripts

project = "ksparse"
author = "The ksparse developers"
copyright = author
release = version = ksparse.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_gallery.gen_gallery"]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/**/*.md5",
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
]
default_role = "any_or_code"
language = "en"
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib[text, axes, container]|Axes",
    "reset_modules": ("matplotlib",),
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "plot_gallery": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("ksparse",),
    "exclude_implicit_doc": {r"numpy\..*", r"matplotlib\..*"},
    "min_reported_time": 1,
    "write_computation_times": False,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "ksparse"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a page opened from disk may not fetch other pages
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "ksparse"},
    "navbar_align": "left",
    "show_prev_next": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

ROOT = Path(__file__).parents[1]


def _as_page(app, name, source):
    """Point links to files of the repository (examples, CONTRIBUTING, CHANGELOG, SECURITY) to their pages here."""
    text = source[0]
    up = "../" * name.count("/")
    text = re.sub(r"\]\((?:\.\./)*examples/(\w+)\.py\)", rf"]({up}gallery/\1.rst)", text)
    text = re.sub(r"\]\((?:\.\./)*CONTRIBUTING\.md\)", rf"]({up}contributing.md)", text)
    text = re.sub(r"\]\((?:\.\./)*CHANGELOG\.md\)", rf"]({up}changelog.md)", text)
    text = re.sub(r"\]\((?:\.\./)*SECURITY\.md\)", rf"]({up}policy.md)", text)
    source[0] = text


def _any_or_code(name, rawtext, text, lineno, inliner, options=None, content=()):
    """Make `name` a link if it is a public name of ksparse, else code."""
    from docutils import nodes
    from sphinx.addnodes import pending_xref

    target = re.sub(r"^ks\.", "ksparse.", text)
    target = target if target.startswith("ksparse.") else f"ksparse.{target}"
    if not re.fullmatch(r"[\w.]+", text):
        return [nodes.literal(rawtext, text)], []
    reference = pending_xref(
        rawtext,
        refdomain="py",
        reftype="obj",
        reftarget=target,
        refexplicit=True,
        refwarn=False,
        refdoc=inliner.document.settings.env.docname,
    )
    reference += nodes.literal(text, text)
    return [reference], []


def _bars(app, what, name, piece, options, lines):
    """Escape |x| outside code, which reStructuredText would read as a substitution."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(``.*?``)", line)
            lines[place] = "".join(
                part if part.startswith("``") else re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts
            )


def _inline_math(writer, node):
    """Write a formula within a line as MathML."""
    from docutils.nodes import SkipNode
    from docutils.utils.math.latex2mathml import tex2mathml

    writer.body.append(tex2mathml(node.astext()))
    raise SkipNode


def _display_math(writer, node):
    """Write a formula on lines of its own as MathML."""
    from docutils.nodes import SkipNode
    from docutils.utils.math.latex2mathml import tex2mathml

    formula = tex2mathml(node.astext()).replace("<math", '<math display="block"', 1)
    writer.body.append(f'<div class="math">{formula}</div>')
    raise SkipNode


def setup(app):
    """Register the hooks above."""
    app.add_html_math_renderer("mathml", (_inline_math, None), (_display_math, None))
    app.connect("autodoc-process-docstring", _bars, priority=900)  # after numpydoc
    app.add_role("any_or_code", _any_or_code)
    app.connect("source-read", _as_page)
    return {"parallel_read_safe": True}
