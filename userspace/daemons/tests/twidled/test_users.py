# SPDX-License-Identifier: GPL-2.0-only
"""What users of twidled get: who is silent, when, and what happens to connections."""

import signal
import time

from service import SEC, ServiceTest, now, offline_at


class Users(ServiceTest):
    def test_silence(self):
        """A user that falls silent is reported once, no earlier than its timeout after its last
        packet. The user's connection is told, too, and is then closed."""
        self.start("timeout = 500ms")
        before = now()
        user = self.online(self.log_in, 4711)
        self.assertGreaterEqual(self.offline(4711), before + SEC // 2)
        self.is_closed(user, "offline")
        self.assertTrue(self.out.is_quiet(1.5))

    def test_packets(self):
        """Each packet, whatever it contains, gives its user the whole timeout again."""
        self.start("timeout = 2s")
        self.online(self.log_in, 1)
        talks = self.online(self.log_in, 2)
        for text in ["x", "user 1\n"] * 15:
            self.say(talks, text)
            time.sleep(0.1)
        last = now()
        self.say(talks, "\n")
        self.offline(1)
        self.assertGreaterEqual(self.offline(2), last + 2 * SEC)

    def test_comes_back(self):
        """No line tells of the end of a connection, or of a user who comes back in time."""
        self.start("timeout = 2s")
        self.online(self.log_in, 5).file.close()
        user = self.log_in(5)
        self.offline(5)
        user.file.close()
        # A user that comes back too late is online anew.
        self.online(self.log_in, 5)

    def test_protocol(self):
        """A first line may come in pieces and end in CR LF. Any other first line is refused with
        a message, and no other connection is disturbed."""
        self.start("timeout = 60s")
        pieces = self.connect(self.users)
        for byte in "user 12\r\n":
            self.say(pieces, byte)
            time.sleep(0.005)
        self.tells("online 12")
        for wrong in ("\n", "user\n", "user \n", "user \r\n", "user 1 \n", "user a b\n", "User 1\n",
                      "user  1\n", "user 1\r2\n", "user 1\r\r\n", "user a\tb\n", "user ä\n",
                      "user a\177\n", "GET / HTTP/1.1\r\n", "user " + "0123456789" * 6 + "0123\n"):
            with self.subTest(wrong):
                bad = self.connect(self.users)
                self.say(bad, wrong)
                self.is_closed(bad, "error expected: user NAME")
        self.say(pieces, "packet")
        self.assertTrue(self.out.is_quiet(0.1) and pieces.is_quiet(0))

    def test_many_names(self):
        """Many names come and go: their places are given to others, no line has the name of
        another user, and the file of names does not grow."""
        self.start("timeout = 1s")
        for i in range(5):
            names = [f"user-{user}-of-round-{i}" for user in range(600)]
            users = [self.log_in(name) for name in names]
            told = [line.split()[:2] for line in self.out.take(2 * len(names))]
            for word in ("online", "offline"):
                self.assertEqual(sorted(name for what, name in told if what == word),
                                 sorted(names))
            self.assertTrue(all(told.index(["online", name]) < told.index(["offline", name])
                                for name in names))
            for user in users:
                user.file.close()
            names = self.dir / "state.names"
            self.assertLessEqual(names.stat().st_size, 2 * 65536)

    def test_no_name(self):
        """A connection without a name is closed after the timeout."""
        self.start("timeout = 300ms")
        mute = self.connect(self.users)
        self.say(mute, "user 1")
        self.is_closed(mute, "error expected: user NAME")
        self.assertTrue(self.out.is_quiet(0.1))

    def test_connects_twice(self):
        """A user's newest connection counts. The older connection is told, and closed."""
        self.start("timeout = 60s")
        old = self.online(self.log_in, 7)
        user = self.log_in(7)
        self.is_closed(old, "error connected again")
        self.say(user, "packet")
        self.assertTrue(self.out.is_quiet(0.3) and user.is_quiet(0))

    def test_tcp(self):
        """Users come by TCP, on several addresses at once."""
        self.start("timeout = 500ms", self.by_tcp())
        self.online(lambda name: self.log_in_by_tcp(f"{name}\nand more"), 8)
        self.offline(8)
        self.online(self.log_in, 9)

    def test_full(self):
        """A user beyond max-users is refused with a message. The other users stay."""
        self.start("timeout = 60s", "max-users = 2")
        first = self.online(self.log_in, 1)
        self.online(self.log_in, 2)
        self.is_closed(self.log_in(3), "error no room")
        self.logged("twidled: user 3 is refused: max-users are online")
        self.assertTrue(first.is_quiet(0.1))
        self.subscribe(online=2)

    def test_late_service(self):
        """A packet that was sent in time counts, also if the service reads it late because more
        users sent packets than the service reads in one turn."""
        count = 1500
        self.start("timeout = 4s")
        users = [self.log_in(user) for user in range(count)]
        self.assertEqual(len(self.out.take(count)), count)
        self.process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 4.1
        for user in users:
            self.say(user, "in time")
        time.sleep(max(0, end - time.monotonic()))
        self.process.send_signal(signal.SIGCONT)
        self.assertTrue(self.out.is_quiet(1))
        self.all_offline(count, self.out.take(count))

    def test_watched_goes(self):
        """The end of a connection that is asked neither shortens nor prolongs the timeout after
        the last packet."""
        self.start("timeout = 3s", self.by_tcp())
        user = self.online(self.log_in_by_tcp, 5)
        time.sleep(1.5)
        last = now()
        self.say(user, "x")
        time.sleep(1)
        closed = now()
        user.file.close()
        deadline = self.offline(5)
        self.assertTrue(last + 3 * SEC <= deadline < closed + 3 * SEC)
        self.assertTrue(self.out.is_quiet(0.5))

    def test_not_watched(self):
        """With watch = no nothing is saved, and a packet gives the whole timeout."""
        self.start("timeout = 2s", "watch = no", self.by_tcp())
        self.online(self.log_in_by_tcp, 1)
        talks = self.online(self.log_in_by_tcp, 2)
        for _ in range(20):
            self.say(talks, "x")
            time.sleep(0.05)
        last = now()
        self.say(talks, "x")
        self.offline(1)
        self.assertGreaterEqual(self.offline(2), last + 2 * SEC)
        self.stopped()
        self.assertIsNone(self.log.line(0))

    def test_watched_reload(self):
        """A new timeout also holds for users by TCP, from the next packet on."""
        self.start("timeout = 1h", self.by_tcp())
        user = self.online(self.log_in_by_tcp, 1)
        self.reload("timeout = 1s", self.by_tcp())
        self.assertTrue(self.out.is_quiet(1.5))
        for _ in range(10):
            last = now()
            self.say(user, "packet")
            time.sleep(0.15)
        self.assertGreaterEqual(self.offline(1), last + SEC)

    def test_few_files(self):
        """Without privileges there are as many connections as files may be open. The next
        connection waits until there is room."""
        most = 12
        self.configure("timeout = 60s")
        self.dir.chmod(0o777)
        self.files = 128 + most
        self.spawn()
        self.log.ignored = None
        self.assertTrue(self.is_told("READY=1"))
        self.tells("anew")
        self.assertIn(f"twidled: no more than {most} connections: the limit of open files is "
                      f"{self.files}", (self.log.line(), self.log.line()))
        users = [self.online(self.log_in, user) for user in range(most)]
        self.log_in(99)
        self.logged(f"twidled: connections wait, {most} are open: this is the limit")
        self.assertTrue(self.out.is_quiet(0.5))
        users[5].file.close()
        self.tells("online 99")


class Subscribers(ServiceTest):
    def test_subscribers(self):
        """Every subscriber is told every line, in the same order and with the same time."""
        self.start("timeout = 500ms")
        *subscribers, gone = [self.subscribe() for _ in range(3)]
        gone.file.close()
        self.online(self.log_in, 3)
        line = self.out.line()
        offline_at(line, 3)
        for subscriber in subscribers:
            self.tells("online 3", subscriber)
            self.assertEqual(subscriber.line(), line)

    def test_snapshot(self):
        """A new subscriber is told who is online, users without a connection included."""
        self.start("timeout = 60s")
        self.online(self.log_in, "bob").file.close()
        self.online(self.log_in, 4711)
        subscriber = self.connect(self.events)
        self.assertEqual(sorted(subscriber.take(2)), ["is-online 4711", "is-online bob"])
        self.tells("listed 2", subscriber)
        self.log_in("carol")
        self.tells("online carol", subscriber)
        self.assertTrue(subscriber.is_quiet(0.2))

    def test_snapshot_in_motion(self):
        """Subscribers come while users come and go. Each list and the lines behind it fit
        together, so that in the end no user is online."""
        self.start("timeout = 400ms")
        streams = []
        for i in range(40):
            for user in range(10 * i, 10 * i + 10):
                self.log_in(user)
            streams.append(self.connect(self.events))
            time.sleep(0.03)
        self.assertEqual(len(self.out.take(800)), 800)
        for stream in streams:
            online = set()
            while line := stream.line(0.05):
                word, user = line.split()[:2]
                if word in ("online", "is-online"):
                    self.assertNotIn(user, online)
                    online.add(user)
                elif word == "offline":
                    online.remove(user)
                else:
                    self.assertEqual(word, "listed")
            self.assertEqual(online, set())

    def test_many_subscribers(self):
        """At most 64 subscribers are accepted. The next subscriber is refused and does not
        wait."""
        self.start("timeout = 60s")
        *_, last = [self.connect(self.events) for _ in range(65)]
        self.logged("twidled: more than 64 subscribers: one is refused")
        self.assertTrue(last.has_ended())
        self.online(self.log_in, 1)

    def test_buffer_goes_round(self):
        """A subscriber that reads misses nothing, though all lines are far more than its buffer
        holds."""
        self.start("timeout = 60s", "buffer = 4096")
        subscriber = self.subscribe()
        for user in range(400):
            self.log_in(user)
            line = self.out.line()
            self.assertEqual(line.split()[:2], ["online", str(user)])
            self.assertEqual(subscriber.line(), line)

    def test_slow_subscriber(self):
        """A subscriber that does not read is dropped with a message when its buffer is full. The
        other subscribers and standard output miss nothing."""
        count = 15000
        # On a slow machine all lines may still wait for the quick subscriber.
        self.start("timeout = 1s", "buffer = 4096")
        slow = self.subscribe()
        self.reload("timeout = 1s", "buffer = 4194304")
        quick = self.subscribe()
        self.log_in_many(count)
        lines = self.out.take(2 * count)
        self.assertEqual(quick.take(2 * count), lines)
        self.all_offline(count, [line for line in lines if line.startswith("offline")])
        self.assertRegex(self.log.line(), "subscriber 1 is more than.*dropped")
        # The slow subscriber gets the first lines without a gap, and then the end of the stream.
        got = slow.take(2 * count)
        self.assertTrue(slow.has_ended())
        self.assertLess(len(got), len(lines))
        self.assertEqual(got, lines[:len(got)])
