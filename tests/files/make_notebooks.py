#!/usr/bin/env python3
"""Makes notebooks/: small .ipynb files as Jupyter, Colab and others write them.

python3 tests/files/make_notebooks.py     needs nbformat
"""

import base64
import json
import os
import struct
import zlib

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notebooks")


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 40 + y) % 256 for x in range(3 * width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


def write(name, text):
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8", newline="") as f:
        f.write(text)


def jupyter():
    red = "\x1b[0;31m"
    trace = [
        red + "-" * 20 + "\x1b[0m",
        red + "ValueError\x1b[0m  Traceback (most recent call last)",
        red + "ValueError\x1b[0m: é",
    ]
    cells = [
        new_markdown_cell(
            "# Title\n\n![a](attachment:a.png)", id="title", attachments={"a.png": {"image/png": png(1, 1)}}
        ),
        new_code_cell(
            "import math\nmath.pi",
            id="pi",
            execution_count=3,
            metadata={"tags": ["b", "a"], "collapsed": False},
            outputs=[
                new_output("stream", name="stdout", text="one\ntwo\r\nthree"),
                new_output("stream", name="stderr", text="\x1b]0;title\x07"),
                new_output("execute_result", {"text/plain": "3.14", "text/html": "<b>3.14</b>"}, execution_count=3),
            ],
        ),
        new_code_cell(
            "plot()",
            id="plot",
            execution_count=4,
            outputs=[
                new_output(
                    "display_data",
                    {"image/png": png(3, 2) + "\n", "text/plain": "<Figure size 3x2>"},
                    metadata={"image/png": {"width": 3}},
                ),
                new_output("display_data", {"application/vnd.plotly.v1+json": {"data": [1, {"x": None}], "n": 1e400}}),
            ],
        ),
        new_code_cell(
            "raise ValueError('é')",
            id="fail",
            execution_count=5,
            outputs=[new_output("error", ename="ValueError", evalue="é", traceback=trace)],
        ),
        new_raw_cell("\\LaTeX", id="raw", metadata={"format": "text/latex"}),
        new_code_cell("", id="empty"),
    ]
    notebook = new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "widgets": {"state": {"é": [True, False, None]}},
        },
    )
    write("jupyter.ipynb", nbformat.writes(notebook) + "\n")


def colab():  # other indentation and order, ids in the metadata, texts that are one string
    cells = [
        {"cell_type": "markdown", "source": ["# Colab"], "metadata": {"id": "kZaBcD-12_x"}},
        {
            "cell_type": "code",
            "source": "!pip list\n1 + 1",
            "metadata": {"id": "xYz", "colab": {"base_uri": "https://x"}},
            "execution_count": 1,
            "outputs": [
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}, "metadata": {}, "execution_count": 1}
            ],
        },
    ]
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 0,
        "metadata": {"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "cells": cells,
    }
    write("colab.ipynb", json.dumps(notebook, indent=2))
    write("dense.ipynb", json.dumps(notebook, separators=(",", ":")))
    write("loose.ipynb", json.dumps(notebook, indent=1, separators=("\t,", " :\r\n")) + " \n\n")
    write("empty.ipynb", json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1))


def refused():
    head = '{"cells": [{"cell_type": "code", "source": '
    write("bad_short.ipynb", head + '["x = 1')
    write("bad_source.ipynb", head + '3}], "nbformat": 4}')
    write("bad_old.ipynb", '{"worksheets": [], "nbformat": 3}')
    write("bad_new.ipynb", '{"cells": [], "nbformat": 5}')
    write("bad_list.ipynb", "[1]")
    write("bad_text.ipynb", "# %%\nx = 1\n")
    write("bad_none.ipynb", "")
    write("bad_deep.ipynb", '{"metadata": ' + "[" * 5000 + "]" * 5000 + ', "cells": [], "nbformat": 4}')
    write("bad_type.ipynb", '{"cells": [{"source": ""}], "nbformat": 4}')
    write("bad_more.ipynb", '{"cells": [], "nbformat": 4} {}')
    write("bad_escape.ipynb", head + '"\\x"}], "nbformat": 4}')
    write("bad_twice.ipynb", '{"cells": [], "cells": [], "nbformat": 4}')


os.makedirs(FOLDER, exist_ok=True)
jupyter()
colab()
refused()
