"""Public names of `papers.prompttuner`, by module; loaded at first use."""

from .elasticflow import ElasticFlow as ElasticFlow
from .infless import Infless as Infless
from .policy import PromptTuner as PromptTuner
from .recipe import PromptLab as PromptLab
from .explorer import PromptExplorer as PromptExplorer, PromptSteps as PromptSteps
