"""Where configurations are in a speed table, kept: a policy asks for the same ones round after round."""

import numpy as np

from gpuschedlab.speeds.codes import ANY, config_codes

TEMPLATES = 8
"""Sets of configurations whose places in a table are kept."""


class Places(dict):
    """Places of the configurations that were asked for lately, by their bytes; None: asked for once, not looked up yet."""

    def first_asked(self, *configurations: np.ndarray) -> bool:
        """Whether some configurations are asked for the first time; the next time they are not."""
        if is_new := (configurations_key := _key(configurations)) not in self:
            self._keep(configurations_key, None)
        return is_new

    def of(self, speeds, *configurations: np.ndarray) -> np.ndarray:
        """Return an array (M, C) of the places of types, nodes and GPUs, as `Speeds.places`."""
        if self.get(configurations_key := _key(configurations)) is None:
            self._keep(configurations_key, find_places(speeds, *configurations))
        return self[configurations_key]

    def _keep(self, configurations_key: bytes, places: np.ndarray | None):
        """Keep an entry; the oldest are dropped."""
        self.pop(configurations_key, None)
        while len(self) >= TEMPLATES:
            self.pop(next(iter(self)))
        self[configurations_key] = places


def _key(arrays) -> bytes:
    return b"".join(configuration_array.tobytes() for configuration_array in arrays)


def find_places(speeds, types, nodes, gpus) -> np.ndarray:
    """Return an array (M, C): where each model's rates in each configuration begin, -1 for none; as `codes.find_row` finds it."""
    any_ = np.full(len(types), ANY)
    keys = [config_codes(types, n, g) for n, g in ((nodes, gpus), (any_, gpus), (any_, any_))]
    rate_places = np.full((len(speeds.models), len(types)), -1, np.int64)
    for model_number in range(len(speeds.models)):
        model_entries = slice(speeds.first[model_number], speeds.first[model_number + 1])
        code = speeds.code[model_entries]
        rate_row = speeds.row[model_entries]
        for configuration_code in keys:
            code_index = np.minimum(np.searchsorted(code, configuration_code), len(code) - 1)
            rate_places[model_number] = np.where(
                (rate_places[model_number] < 0) & (code[code_index] == configuration_code) & (types >= 0),
                rate_row[code_index],
                rate_places[model_number],
            )
    return rate_places
