"""Updates with tuf.ngclient, unmodified, and prints what it trusts and read, or why it refused.

Arguments: base URL of the repository, the client's directory, a file with the first root or "", target paths.
"""

import hashlib
import json
import logging
import os
import sys

from tuf.ngclient import Updater


def versions(directory):
    """The versions of the metadata that the client has stored."""
    found = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(".json"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                found[name.removesuffix(".json")] = json.load(file)["signed"]["version"]
    return found


def update(base, directory, root, paths):
    metadata = os.path.join(directory, "metadata")
    targets = os.path.join(directory, "targets")
    os.makedirs(metadata, exist_ok=True)
    os.makedirs(targets, exist_ok=True)
    bootstrap = None
    if root:
        with open(root, "rb") as file:
            bootstrap = file.read()
    read = {}
    try:
        updater = Updater(
            metadata, f"{base}/metadata/", targets, f"{base}/targets/", bootstrap=bootstrap
        )
        updater.refresh()
        for path in paths:
            info = updater.get_targetinfo(path)
            if info is None:
                read[path] = None
                continue
            with open(updater.download_target(info), "rb") as file:
                content = file.read()
            read[path] = {
                "sha256": hashlib.sha256(content).hexdigest(),
                "custom": info.unrecognized_fields.get("custom"),
            }
    except Exception as error:  # the test compares what the client says
        return {"error": type(error).__name__, "message": str(error), "versions": versions(metadata)}
    return {"versions": versions(metadata), "targets": read}


logging.disable(logging.CRITICAL)
print(json.dumps(update(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])))
