# SPDX-License-Identifier: GPL-2.0-only
"""What the administrator of twidled sees: the configuration, standard output, the command that is
run for each user who has fallen silent, and messages."""

import os
import pathlib
import signal
import socket
import time

from service import SEC, ServiceTest, Stream, now, ready, without_time

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "twidled.conf"
NO_TIME = "is no time, such as 500ms, 30s, 10min or 48h, or too long a one"
NO_COMMAND = 'is no command whose program is a path that begins with "/"'
NO_ADDRESS = "is neither ADDRESS:PORT, in numbers, nor a path"
MOST = "is no number from 1 to 16777216"

WRONG = (
    ("foo = 1", 'unknown key "foo"'),
    ("max_users = 1", 'unknown key "max_users"'),
    ("timeout", '"timeout" is not "key = value"'),
    ("timeout =", "timeout has no value"),
    ("tick = 1s", "tick is given twice"),
    ("exec = true", f'exec: "true" {NO_COMMAND}'),
    ("exec = /no/such x", 'exec: "/no/such x" cannot be run: No such file or directory'),
    ("exec = /tmp", 'exec: "/tmp" is no program'),
    ("exec-timeout = 2h", f'exec-timeout: "2h" {NO_TIME}'),
    ("timeout = 30", f'timeout: "30" {NO_TIME}'),
    ("timeout = 0s", f'timeout: "0s" {NO_TIME}'),
    ("timeout = -1s", f'timeout: "-1s" {NO_TIME}'),
    ("timeout = 18446744073709551616s", f'timeout: "18446744073709551616s" {NO_TIME}'),
    ("timeout = 8761h", f'timeout: "8761h" {NO_TIME}'),
    ("max-users = 0", f'max-users: "0" {MOST}'),
    ("max-users = 1e5", f'max-users: "1e5" {MOST}'),
    ("buffer = 4095", 'buffer: "4095" is no number from 4096 to 1073741824'),
    ("watch = maybe", 'watch: "maybe" is neither yes nor no'),
    ("close = maybe", 'close: "maybe" is neither yes nor no'),
    ("listen = localhost:1", f'listen: "localhost:1" {NO_ADDRESS}'),
    ("listen = 127.0.0.1:65536", f'listen: "127.0.0.1:65536" {NO_ADDRESS}'),
    ("listen = ::1:80", 'listen: "::1:80" has an IPv6 address that is not in []'),
)


class Life(ServiceTest):
    def fails(self, status, message, *options):
        """The service ends with this status and message, and with no other one."""
        self.spawn(*options)
        self.assertEqual(self.status(), status)
        self.logged(message)
        self.assertIsNone(self.log.line(0))

    def test_version(self):
        self.configure()
        self.spawn("--version")
        self.assertEqual(self.status(), 0)
        makefile = CONFIG.parents[1] / "lib/Makefile"
        version = next(line.split()[-1] for line in makefile.read_text().splitlines()
                       if line.startswith("VERSION"))
        self.assertEqual(self.out.line(), f"twidled {version}")

    def test_reload(self):
        """After SIGHUP a new timeout holds for a user from its next packet on. A setting that
        cannot change gets a message and stays. A file with an error changes nothing."""
        self.start("timeout = 1h")
        user = self.online(self.log_in, 1)
        self.reload("timeout = 1s", "foo = 1")
        self.logged(f'{self.config}:7: unknown key "foo"')
        self.logged(f"twidled: {self.config} has an error: nothing is changed")
        self.say(user, "packet")
        self.assertTrue(self.out.is_quiet(1.5))
        self.reload("timeout = 1s", "max-users = 5")
        self.logged(f"twidled: {self.config}: another max-users needs a restart")
        self.assertTrue(self.out.is_quiet(1.5))
        before = now()
        self.say(user, "packet")
        self.assertGreaterEqual(self.offline(1), before + SEC)

    def test_stops(self):
        """After SIGTERM systemd is told, and there is no message."""
        self.start("timeout = 60s")
        self.process.send_signal(signal.SIGTERM)
        self.assertTrue(self.is_told("STOPPING=1"))
        self.assertEqual(self.status(), 0)
        self.assertIsNone(self.log.line(0))

    def test_in_use(self):
        """A second service with the same state is refused."""
        self.start("timeout = 60s")
        first = self.process
        self.fails(1, f"twidled: {self.state} is in use by another twidled")
        self.process = first

    def test_address_in_use(self):
        """A service takes no socket at which another service listens. A socket at which no
        process listens is removed."""
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.users))
            other.listen(1)
            self.configure()
            self.fails(1, f"twidled: listening on {self.users}: Address already in use")
        self.start()

    def test_foreign_state(self):
        """A state path that names another program's file leaves it as it is."""
        self.state.write_text("precious")
        self.configure()
        self.fails(1, f"twidled: {self.state} is not a file of this twidled")
        self.assertEqual(self.state.read_text(), "precious")

    def test_config_errors(self):
        """An error in the file gives a line that tells where it is. Nothing has changed."""
        for line, error in WRONG:
            self.configure("# a comment", line)
            for options in (), ("--check-config",):
                with self.subTest(line, options=options):
                    self.fails(2, f"{self.config}:7: {error}", *options)
        self.config.unlink()
        self.fails(2, f"{self.config}:0: No such file or directory")
        self.assertEqual([file.name for file in self.dir.iterdir()], ["notify"])
        self.assertTrue(self.out.is_quiet(0))

    def test_config_right(self):
        """For a correct file --check-config prints nothing. The installed example is correct."""
        self.configure("  timeout=48h\t", "", "#x = y", "listen = [::1]:7075",
                       "listen = 0.0.0.0:7075", "max-users = 16777216", "close = no")
        for self.config in self.config, CONFIG:
            self.spawn("--check-config")
            self.assertEqual(self.status(), 0)
            self.assertIsNone(self.log.line(0))
        self.assertFalse(self.state.exists())


class Output(ServiceTest):
    def test_stdout_stuck(self):
        """No program reads standard output. Packets are still read, and more users are silent
        than the outbox has room for. All users are reported in the end."""
        count = 20000
        self.start("timeout = 5s")
        talks = self.online(self.log_in, count + 1)
        self.log_in_many(count)
        lines = self.out.take(count)
        for _ in range(70):
            self.say(talks, "alive")
            time.sleep(0.1)
        self.assertTrue(talks.is_quiet(0))
        lines += self.out.take(count)
        self.assertTrue(talks.is_quiet(0))
        self.all_offline(count, [line for line in lines if line.startswith("offline")])

    def test_pipe_and_file(self):
        """Standard output may also be a pipe or a file. The service ends if the reader of the
        pipe has gone, and its lines are printed later."""
        reader, self.out_end = os.pipe()
        self.out = Stream(open(reader))
        self.start("timeout = 60s")
        self.online(self.log_in, 1)
        self.out.file.close()
        self.log_in(2)
        self.assertEqual(self.status(), 1)
        self.logged("twidled: standard output: Broken pipe")
        os.close(self.out_end)
        with open(self.dir / "out", "w") as self.out_end:
            self.start()
            self.logged("twidled: 1 lines were left to be told")
            self.stopped()
            first, *_ = (self.dir / "out").read_text().splitlines()
            self.assertEqual(without_time(first), "online 2")


class Commands(ServiceTest):
    """The command writes into the file "ran"."""

    def write_script(self, *lines):
        script = self.dir / "script"
        script.write_text("\n".join(("#!/bin/sh", f"ran={self.dir}/ran", *lines, "")))
        script.chmod(0o755)
        return f"exec = {script}"

    def ran(self):
        file = self.dir / "ran"
        return file.read_text().splitlines() if file.exists() else []

    def children(self):
        """Returns how many children the service has, zombies included."""
        pid = self.process.pid
        return len(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())

    def test_exec(self):
        """The command runs once for each user who goes offline, and gets the user in its
        environment, unchanged, and nothing of where the wheel is. The command has no input, and
        its output is not among the lines."""
        command = self.write_script(
            "cat", "echo output",
            'echo "$TWIDLED_USER|$TWIDLED_DEADLINE|$TWIDLED_TIME|$#|$1|$2$TIMEWHEEL" >>$ran')
        self.start("timeout = 300ms", f"{command} a  $b")
        self.online(self.log_in, "$(reboot);`x`")
        line = self.out.line()
        self.logged("output")
        self.assertTrue(ready(self.ran))
        time.sleep(0.3)
        self.assertEqual(["offline|" + ran for ran in self.ran()],
                         [line.replace(" ", "|") + "|2|a|$b"])
        self.assertEqual(self.children(), 0)
        self.assertTrue(self.out.is_quiet(0.3))
        # A failure is reported. A reload can set another command, or no command.
        self.write_script("exit 3")
        self.log_in("bob")
        self.logged("twidled: the command for the user bob has exit status 3; 1 have failed")
        self.reload("timeout = 300ms")
        self.write_script("echo no >>$ran")
        self.log_in("carol")
        self.assertEqual(len(self.out.take(4)), 4)
        time.sleep(0.3)
        self.assertEqual(len(self.ran()), 1)

    def test_exec_hangs(self):
        """Commands that hang delay other commands until they are ended, but no line. Commands
        that have no room in the ring of lines are left out, with a message."""
        count = 18000
        command = self.write_script("echo began >>$ran; trap '' TERM", "while :; do sleep 1; done")
        self.start("timeout = 1s", command, "exec-timeout = 1s")
        self.log_in_many(count)
        lines = self.out.take(2 * count)
        self.all_offline(count, [line for line in lines if line.startswith("offline")])
        self.assertRegex(self.log.line(), "^twidled: commands are slow: those of ")
        # 16 commands run at a time. A command gets SIGTERM after one second, and SIGKILL after
        # five more.
        self.assertLessEqual(self.children(), 16)
        self.assertRegex(self.log.line(), " was ended by signal 9 after exec-timeout; ")
        self.assertTrue(ready(lambda: len(self.ran()) >= 32))
        self.assertEqual(len(self.ran()), 32)
        self.assertLessEqual(self.children(), 16)

    def test_exec_killed(self):
        """The next service starts the commands that were not started when the service was
        killed."""
        command = self.write_script('echo "$TWIDLED_USER" >>$ran',
                                    "[ -e $ran.go ] || exec sleep 100")
        self.start("timeout = 1s", command)
        self.log_in_many(40)
        self.assertEqual(len(self.out.take(80)), 80)
        self.assertTrue(ready(lambda: len(self.ran()) == 16))
        self.killed()
        (self.dir / "ran.go").touch()
        self.is_new = True
        self.start()
        self.assertTrue(ready(lambda: len(self.ran()) >= 40))
        self.assertEqual(sorted(self.ran(), key=int), [str(user) for user in range(40)])
