"""PostgreSQL and an S3 server, as processes of a rig: what a store without a disk of its own needs.

Both are the real programs, started on free ports in the rig's folder and ended with it. Where one is not
installed the rig is skipped; in CI that is a failure.

    postgres = Postgres(rig)            initdb, a database, `postgres.url`
    postgres.cut()                      ends one connection, maybe within a commit
    postgres = Pair(rig)                a primary and a synchronous standby; `postgres.fail_over()`
    postgres.crash()                    ends all of it at once, and starts it again: its log is replayed
    bucket = Bucket(rig)                `bucket.url`; keys are in `environment(postgres, bucket)`
"""

import glob
import http.client
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time

from common import Failed, Skipped

STARTED_SECONDS = 30
# Any that this server program takes.
KEYS = {"AWS_ACCESS_KEY_ID": "rig", "AWS_SECRET_ACCESS_KEY": "rig"}


def missing(what):
    """Ends the rig: the machine lacks what it needs."""
    raise Failed(f"needs {what}") if os.environ.get("CI") else Skipped(f"needs {what}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(postgres, bucket):
    """Settings of a server whose store is there. Nothing is mailed."""
    return KEYS | {
        "INLAY_METADATA_URL": postgres.url,
        "INLAY_EVENTS_URL": bucket.url,
        "INLAY_SMTP_URL": "smtp://127.0.0.1:1",
        "INLAY_MAIL_FROM": "rig@example.com",
    }


class Postgres:
    """A server of its own, with its syncs as they are by default."""

    def __init__(self, rig):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            missing("PostgreSQL")
        self.programs, self.folder, self.port = programs[-1], rig.folder / "postgres", free_port()
        self.folder.mkdir()
        # It refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
            # Its folder is in a temporary one that is ours alone.
            rig.folder.chmod(0o711)
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-A", "trust", "-U", "inlay", "--no-sync")
        self.start()
        rig.stack.callback(self.end)
        self.sql("CREATE DATABASE inlay", database="postgres")
        self.url = f"postgres://inlay@127.0.0.1:{self.port}/inlay"

    def _run(self, program, *arguments):
        command = [f"{self.programs}/{program}", *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", self.user, "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        if done.returncode != 0:
            raise Failed(f"{program}: {done.stdout[-500:]} {done.stderr[-500:]}")
        return done.stdout

    def start(self):
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=300"
        log = str(self.folder / "postgres.txt")
        data = str(self.folder / "data")
        self._run("pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start")

    def crash(self):
        """Ends all processes without a checkpoint, and starts anew."""
        self.stop("immediate")
        self.start()

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def end(self):
        try:
            self.stop("immediate")
        except Failed:
            pass  # it is not running

    def sql(self, statement, database="inlay"):
        """What a statement answers, as text."""
        command = [f"{self.programs}/psql", "-h", "127.0.0.1", "-p", str(self.port)]
        command += ["-U", "inlay", "-d", database, "-At", "-c", statement]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"psql: {done.stderr[-500:]}")
        return done.stdout.strip()

    def cut(self):
        """Ends one connection of the server under test, whatever it is doing."""
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'inlay' ORDER BY random() LIMIT 1"
        )


class Pair(Postgres):
    """A primary, and a standby without which nothing is acknowledged."""

    def __init__(self, rig):
        super().__init__(rig)
        self.rig, self.number = rig, 1
        self.make_standby()

    def make_standby(self):
        """A copy of the primary that follows it; from then on each commit waits for it."""
        self.number += 1
        primary = (self.folder, self.port)
        folder, port = self.folder.with_name(f"postgres-{self.number}"), free_port()
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, self.user)
        data = str(folder / "data")
        source = f"host=127.0.0.1 port={self.port} user=inlay application_name=standby"
        self._run("pg_basebackup", "-D", data, "-R", "-c", "fast", "-d", source)
        self.folder, self.port = folder, port
        try:
            self.start()
        finally:
            self.standby = (folder, port)
            self.folder, self.port = primary
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql("SELECT pg_reload_conf()")

    def fail_over(self):
        """The primary dies with all that it had under way, and the standby becomes the primary. It has none then."""
        self.stop("immediate")
        self.folder, self.port = self.standby
        self.standby = None
        # It would wait for a standby that there is not yet.
        conf = self.folder / "data" / "postgresql.auto.conf"
        with open(conf, "a", encoding="utf-8") as file:
            file.write("synchronous_standby_names = ''\n")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "promote")
        self.sql("SELECT pg_reload_conf()")

    def end(self):
        if self.standby:
            primary = (self.folder, self.port)
            self.folder, self.port = self.standby
            super().end()
            self.folder, self.port = primary
        super().end()


class Bucket:
    """An S3 server that keeps objects in memory, with one bucket."""

    def __init__(self, rig):
        program = shutil.which("moto_server")
        if program is None:
            missing("moto (pip install 'moto[server]')")
        self.port = free_port()
        with open(rig.folder / "bucket.txt", "wb") as log:
            self.process = subprocess.Popen(
                [program, "-H", "127.0.0.1", "-p", str(self.port)], stdout=log, stderr=log
            )
        rig.stack.callback(self.end)
        limit = time.monotonic() + STARTED_SECONDS
        while True:
            try:
                self.call("PUT", "/rig")
                break
            except OSError:
                if time.monotonic() > limit:
                    raise Failed("the S3 server does not start") from None
                time.sleep(0.1)
        self.url = f"s3://rig/prefix?region=us-east-1&endpoint=http://127.0.0.1:{self.port}"

    def call(self, method, path, body=None):
        """Status and answer of a request that is not signed; this server does not mind."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def end(self):
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    sys.exit("a part of other rigs")
