"""Published systems, a folder each: policy, program, estimators, speeds, recipe, figures, explorer and command side by side.

The laboratory names none of them. A folder with a stub `__init__.pyi` is found by being here, and a package from outside by its
entry point in the group `gpuschedlab.papers` (`gpuschedlab._faces`).
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
