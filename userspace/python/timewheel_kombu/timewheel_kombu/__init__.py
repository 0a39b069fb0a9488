# SPDX-License-Identifier: LGPL-2.1-or-later
"""Celery and kombu keep their messages in twjobd.

    broker_url = "timewheel:///run/twjobd/socket"
    broker_url = "timewheel://:password@10.0.0.1:7076"

Celery finds the transport by itself. A program that uses kombu alone has to import this
module before it connects. README.md describes the options and the promises.
"""
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["timewheel"] = "timewheel_kombu.transport:Transport"

# kombu knows no plugins for transports, but loads those for serializers. The plugin of this
# package registers the transport, and adds a serializer that can neither write nor read.
NO_SERIALIZER = (None, None, "application/x-timewheel-none")

__all__ = ["cancel", "move", "together"]


def __getattr__(name):
    """Imports what needs more of kombu, which may import this module while it is imported
    itself."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import tasks
    return getattr(tasks, name)
