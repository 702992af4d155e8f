"""One round of Ymir's merger, step by step."""

from gpuschedlab.widgets import StepPlayer


class MergerSteps(StepPlayer):
    """One round of Ymir's merger: columns, pairs left out, the plan chosen and the second best; a slider over rounds of a run.

    Parameters
    ----------
    recipe : MergingCluster, optional
        Its scenario is run under its Ymir, and every round is recorded.
    seed : int
    most : int
        Rounds that are shown: those with the most pairs in their program.

    Examples
    --------
    >>> from gpuschedlab.papers.ymir.recipe import MergingCluster
    >>> player = MergerSteps(MergingCluster(nodes=1, hours=1.0))
    >>> player.cases[0].steps[-1].line
    6
    """

    def __init__(self, recipe=None, seed: int = 0, most: int = 8):
        from gpuschedlab.papers.ymir.recipe import MergingCluster
        from gpuschedlab.papers.ymir.steps import LISTING, cases_of, recorded_rounds

        recipe = recipe or MergingCluster()
        self.rounds = recorded_rounds(recipe(seed), recipe.ymir)
        super().__init__(LISTING, *cases_of(self.rounds, most), what="round")
