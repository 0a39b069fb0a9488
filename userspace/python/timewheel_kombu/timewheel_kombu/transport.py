# SPDX-License-Identifier: LGPL-2.1-or-later
"""kombu's transport: connections and events."""
import re
import select
import socket
import time

from kombu.transport import virtual

from .channel import Channel
from .client import DEFAULT_PORT
from .errors import Unreachable


class Transport(virtual.Transport):
    Channel = Channel
    driver_type = driver_name = "timewheel"
    default_port = DEFAULT_PORT
    can_parse_url = True
    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic"]))
    connection_errors = virtual.Transport.connection_errors + (Unreachable,)
    # All other errors would come again.
    recoverable_connection_errors, recoverable_channel_errors = (Unreachable,), ()
    loop = None

    def driver_version(self):
        return "1"

    def as_uri(self, uri, include_password=False, mask="**"):
        return uri if include_password else re.sub(r":[^:@/]*@", f":{mask}@", uri)

    def _keepers(self):
        return [channel.keeper for channel in self.channels if channel.consumes]

    def drain_events(self, connection, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            for channel in self.channels:
                channel.tick()
            left = 1 if end is None else end - time.monotonic()
            if left <= 0:
                raise socket.timeout()
            select.select(self._keepers(), [], [], min(left, 1))
            for channel in list(self.channels):
                if channel.consumes and channel.deliver():
                    return

    def register_with_event_loop(self, connection, loop):
        self.loop, self.heard = loop, {}
        loop.on_tick.add(self._on_tick)
        loop.call_repeatedly(1, self._on_tick)

    def _on_tick(self):
        for channel in self.channels:
            if channel.consumes:
                self._hear(channel)
                channel.tick()

    def _hear(self, channel):
        if channel not in self.heard:
            self.heard[channel] = channel.keeper.fileno()
            self.loop.add_reader(self.heard[channel], channel.deliver)

    def close_channel(self, channel):
        if self.loop and channel in self.heard:
            self.loop.remove(self.heard.pop(channel))
        super().close_channel(channel)

    def close_connection(self, connection):
        super().close_connection(connection)
        if self.loop:
            self.loop.on_tick.discard(self._on_tick)
