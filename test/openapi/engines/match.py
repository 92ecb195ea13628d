"""Matches texts against patterns: reads {"patterns": [...], "texts": [...]}, prints a row of booleans per pattern."""
import json
import re
import sys

work = json.load(sys.stdin)
rows = [[re.search(pattern, text) is not None for text in work["texts"]] for pattern in work["patterns"]]
print(json.dumps(rows))
