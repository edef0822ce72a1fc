#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A whole gateway, over its sockets: calls, streams, ids, hostile requests, races, starts and ends. TAP.

  gateway.py [--bin DIR] [--only WORD] [--full]
"""
import argparse
import os
import signal
import sys

import gateway_client
from tap import default_label, run

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    p.add_argument("--only", default="")
    p.add_argument("--label", default=default_label())
    p.add_argument("--full", action="store_true", help="races and kills in full numbers")
    gateway_client.ARGS = p.parse_args()
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: sys.exit(1))  # the world is taken down on the way
    import gateway_calls  # noqa: F401  each brings its tests
    import gateway_http  # noqa: F401
    import gateway_hostile  # noqa: F401
    import gateway_start  # noqa: F401
    import gateway_door  # noqa: F401
    import gateway_found  # noqa: F401
    import gateway_approve  # noqa: F401
    import gateway_soak  # noqa: F401
    a = gateway_client.ARGS
    return run("GATEWAY", gateway_client.World, a.only, a.label)


if __name__ == "__main__":
    sys.exit(main())
