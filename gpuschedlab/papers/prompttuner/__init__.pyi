"""Public names of `papers.prompttuner`, by module; loaded at first use."""

from .elasticflow import ElasticFlow as ElasticFlow
from .infless import Infless as Infless
from .policy import PromptTuner as PromptTuner
from .recipe import PromptLab as PromptLab
from .explorer import PromptExplorer as PromptExplorer
from .figures import plot_prompt_map as plot_prompt_map
from .figures import plot_pools as plot_pools, pools as pools, prompt_map as prompt_map
from .metrics import pool_levels as pool_levels
