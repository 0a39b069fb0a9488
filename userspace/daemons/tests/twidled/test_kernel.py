# SPDX-License-Identifier: GPL-2.0-only
"""twidled on the kernel's wheel, which goes on while the service is away: stops, kills and
upgrades, and which packets touch the wheel. Tests of a service without a restart are beside this
file, and need no kernel."""

import os
import signal
import time

import timewheel

from service import SEC, ServiceTest, now, offline_at, ready


class KernelTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(lambda: self.has_wheel() and timewheel.destroy(self.wheel))

    def has_wheel(self):
        return os.path.exists(f"/dev/timewheels/{self.wheel}")

    def deadline_of(self, user):
        """Returns the deadline of a user's token in ns, or None if the user is not online."""
        with timewheel.Wheel.open_named(self.wheel, os.O_RDONLY) as wheel:
            token, = wheel.get_many([user])
            return token and token.deadline_ns

    def touches(self):
        with timewheel.Wheel.open_named(self.wheel, os.O_RDONLY) as wheel:
            return wheel.info().touched

    def touches_while(self, user, packets):
        """Sends packets for a while. Returns for how many packets the wheel was touched."""
        # The login may still be under way.
        time.sleep(0.2)
        before = self.touches()
        for _ in range(packets):
            self.say(user, "x")
            time.sleep(0.1)
        return self.touches() - before


class Restarts(KernelTest):
    def test_planned(self):
        """The users' tokens stay after a stop, and the service says that the wheel is new only if
        it has had no user. A new timeout is for all users who come back. When the wheel is
        destroyed, there is a message, and the status is not 0."""
        self.start("timeout = 1h")
        self.online(self.log_in, 1)
        deadline = self.deadline_of(1)
        self.stopped()
        self.assertEqual(self.deadline_of(1), deadline)
        self.configure("max-users = 77")
        self.spawn()
        self.assertEqual(self.status(), 1)
        self.assertRegex(self.log.line(), "is there, with another tick or max-users")
        self.start("timeout = 1s")
        self.assertTrue(self.out.is_quiet(0.3))
        self.log_in(1)
        self.offline(1)
        timewheel.destroy(self.wheel)
        self.assertEqual(self.status(), 1)
        self.logged(f'twidled: the wheel "{self.wheel}" has been destroyed')
        self.is_new = True
        self.start()
        self.online(self.log_in, 1)

    def test_killed(self):
        """A kill changes no deadline. A user that comes back in time is not reported, and a user
        that fell silent meanwhile is reported later, once."""
        self.start("timeout = 6s")
        self.online(self.log_in, 1)
        time.sleep(2.5)
        user = self.online(self.log_in, 2)
        silent, stays = self.deadline_of(1), self.deadline_of(2)
        self.killed()
        user.file.close()
        ready(lambda: now() > silent)
        self.start()
        last = now()
        self.assertEqual(self.deadline_of(2), stays)
        self.log_in(2)
        self.assertEqual(self.offline(1), silent)
        second = self.offline(2)
        # On a slow machine the user may have come too late, and was silent.
        self.assertTrue(second >= last + 6 * SEC or second == stays < last)
        self.assertTrue(self.out.is_quiet(0.5))

    def test_names(self):
        """Names and numbers are shown as they were given, also after a kill. The removal of the
        file of names does no harm to users who are online."""
        names = ["alice", "sensor-17", "0012", "-1", "18446744073709551615", "9223372036854775808",
                 "9223372036854775807", "$(reboot);`x`'\"\\%s", "0123456789" * 6 + "012"]
        self.start("timeout = 3s")
        for name in names:
            old = self.online(self.log_in, name)
        # A name belongs to one user, whose newest connection counts.
        self.log_in(names[-1])
        self.assertEqual(old.line(), "error connected again")
        self.assertTrue(self.deadline_of(9223372036854775807))
        self.killed()
        self.start()
        lines = self.out.take(len(names))
        self.assertEqual(sorted(line.split()[1] for line in lines), sorted(names))
        for line in lines:
            offline_at(line, line.split()[1])
        self.assertTrue(self.out.is_quiet(0.5))
        self.reload("timeout = 30s")
        self.online(self.log_in, "alice")
        self.stopped()
        (self.dir / "state.names").unlink()
        self.start()
        for i in range(100):
            self.online(self.log_in, f"late-{i}")

    def test_killed_while_telling(self):
        """The service is killed again and again while it reports many users. Each user is reported
        exactly once. A kill may cut a line, and the next service goes on in the middle of it."""
        count, kills, lines = 8000, 0, []
        self.start("timeout = 60s")
        self.process.send_signal(signal.SIGSTOP)
        batch = timewheel.Batch()
        with timewheel.Wheel.open_named(self.wheel) as wheel:
            for user in range(count):
                batch.register(user, 0)
                if user % 1000 == 999:
                    batch.run(wheel)
                    batch.clear()
        self.process.send_signal(signal.SIGCONT)
        while len(lines) < count:
            # Each life of the service prints some more lines, a different number each time.
            more = min(1 + kills * 251 % 1500, count - len(lines))
            lines += self.out.take(more)
            self.killed()
            kills += 1
            self.start()
        self.all_offline(count, lines)
        self.assertGreater(kills, 3)
        self.assertTrue(self.out.is_quiet(0.5))

    def test_wheel_of_the_process(self):
        """A service whose wheel is in its process removes the kernel's wheel that an earlier
        service has left, but no wheel that another service has."""
        self.start("timeout = 1s")
        first = self.process
        self.users, self.events, self.state = (self.dir / name for name in ("u", "e", "s"))
        self.is_new = True
        self.start("timeout = 1s", "wheels = process")
        self.assertTrue(self.has_wheel())
        self.stopped()
        self.process = first
        self.stopped()
        self.assertTrue(self.has_wheel())
        self.is_new = True
        self.start()
        self.assertFalse(self.has_wheel())
        self.online(self.log_in, 5)
        self.offline(5)


class Watched(KernelTest):
    """Connections by TCP are asked when their users sent something last."""

    def test_watched(self):
        """A user whose connection is asked lives by its packets, though they do not touch the
        wheel. Packets of users by unix sockets do touch it."""
        self.start("timeout = 3s", self.by_tcp())
        self.online(self.log_in_by_tcp, 0)
        self.online(self.log_in, 1)
        talks = self.online(self.log_in_by_tcp, 2)
        by_unix = self.online(self.log_in, 3)
        for _ in range(2):
            self.assertEqual(self.touches_while(talks, 12), 0)
            self.assertNotEqual(self.touches_while(by_unix, 12), 0)
        self.all_offline(2, self.out.take(2))
        self.assertTrue(self.deadline_of(3))
        self.stopped()
        # Two packets that arrive together count as one.
        self.assertRegex(self.log.line(), r": ([1-9]|1\d|2[0-4]) packets needed no touch")

    def test_not_watched(self):
        """With watch = no each packet touches the wheel."""
        self.start("timeout = 60s", "watch = no", self.by_tcp())
        talks = self.online(self.log_in_by_tcp, 2)
        self.assertNotEqual(self.touches_while(talks, 5), 0)

    def test_comes_back(self):
        """A user that comes back stays online: beside its old connection, after it, and after a
        connection by a unix socket. No line tells of this."""
        self.start("timeout = 2s", self.by_tcp())
        old = self.online(self.log_in_by_tcp, 7)
        user = self.log_in_by_tcp(7)
        self.is_closed(old, "error connected again")
        self.assertEqual(self.touches_while(user, 25), 0)
        user.file.close()
        time.sleep(0.2)
        old = self.log_in_by_tcp(7)
        self.assertEqual(self.touches_while(old, 3), 0)
        user = self.log_in(7)
        self.assertEqual(old.line(), "error connected again")
        self.assertNotEqual(self.touches_while(user, 25), 0)
        old, user = user, self.log_in_by_tcp(7)
        self.assertEqual(old.line(), "error connected again")
        self.assertEqual(self.touches_while(user, 25), 0)
        self.assertTrue(self.out.is_quiet(0))
        self.offline(7)
        self.assertTrue(self.out.is_quiet(0.5))

    def test_stays_connected(self):
        """With close = no the connection stays, and its next packet brings the user back."""
        self.start("timeout = 1500ms", "close = no", self.by_tcp())
        for name, log_in in enumerate((self.log_in, self.log_in_by_tcp)):
            user = self.online(log_in, name)
            for _ in range(2):
                self.assertEqual(self.touches_while(user, 10) != 0, log_in == self.log_in)
                self.offline(name)
                self.say(user, "here")
                self.tells(f"online {name}")
            user.file.close()
            self.offline(name)

    def test_service_ends(self):
        """After a stop each user has its deadline. After a kill no user has an earlier one."""
        self.configure("timeout = 3s", self.by_tcp())
        for number in signal.SIGTERM, signal.SIGKILL:
            self.start()
            user = self.log_in_by_tcp(number.value)
            self.assertTrue(self.out.line())
            time.sleep(1.7)
            last = now()
            self.say(user, "x")
            time.sleep(0.6)
            ended = now()
            self.end(number)
            kept = self.deadline_of(number)
            self.start()
            if number == signal.SIGTERM:
                self.assertEqual(self.deadline_of(number), kept)
            deadline = self.offline(number.value)
            self.assertGreaterEqual(deadline, last + 3 * SEC)
            if number == signal.SIGTERM:
                self.assertTrue(last + 3 * SEC <= kept)
                self.assertLess(deadline, ended + 3 * SEC)
            self.assertTrue(self.out.is_quiet(0.3))
            self.stopped()

    def test_killed(self):
        """The service is killed while many connections end, and their tokens are replaced. No user
        is lost, and no user is reported twice."""
        count, online = 100, set()

        def follow():
            word, user, *_ = self.out.line().split()
            self.assertEqual(user in online, word == "offline", (word, user))
            online.symmetric_difference_update({user})

        self.configure("timeout = 3s", self.by_tcp())
        for i in range(5):
            self.start()
            users = [self.log_in_by_tcp(user) for user in range(count)]
            while len(online) < count:
                follow()
            for user in users:
                user.file.close()
            time.sleep(i * 0.003)
            self.killed()
        self.start()
        while online:
            follow()
        self.assertTrue(self.out.is_quiet(0.5))

    def test_upgrade(self):
        """A service that asks connections goes on with the wheel of a service that does not, and
        the other way round."""
        self.start("timeout = 60s", "watch = no", self.by_tcp())
        self.online(self.log_in_by_tcp, 9)
        self.stopped()
        self.start("timeout = 60s", "watch = yes", self.by_tcp())
        user = self.online(self.log_in_by_tcp, 1)
        self.assertEqual(self.touches_while(user, 3), 0)
        self.killed()
        # The token of the dead connection still gets another timeout.
        self.start("timeout = 1s", "watch = no", self.by_tcp())
        self.log_in_by_tcp(1)
        self.offline(1)
