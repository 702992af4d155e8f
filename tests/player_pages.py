"""What a page of a player of steps holds."""

import base64
import gzip
import json
import re


def packed(player) -> list:
    """What a player's page holds."""
    (pack,) = re.findall(r'"pack": "([^"]+)"', player.html())
    return json.loads(gzip.decompress(base64.b64decode(pack)))
