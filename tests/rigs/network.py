"""A network of its own for each process of a rig, whose cable can be pulled.

Each process is in a network namespace with one interface, and all of them are connected by a bridge with this one's side. A
process whose cable is pulled gets no refusals and no ends of connections: packets are lost, as behind a switch that has
died. Once it is connected again, what either side still has to send arrives late.

    network = Network(rig)              the bridge; `network.address` is this side of it
    link = network.link("a")            a namespace; `link.command` goes before a command, `link.address` is its address
    link.cut(); link.mend()

It needs root and the right to make namespaces; `Network.is_possible()` says whether there is.
"""

import os
import shutil
import subprocess

from common import Failed


class Network:
    """A bridge, and the namespaces that are connected by it."""

    def __init__(self, rig):
        self.rig, self.number = rig, os.getpid() % 10_000
        self.subnet = f"10.213.{os.getpid() % 250}"
        self.bridge, self.address = f"inlay{self.number}", f"{self.subnet}.1"
        self.links = 0
        ip("link", "add", self.bridge, "type", "bridge")
        rig.stack.callback(ip, "link", "del", self.bridge)
        ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")

    @staticmethod
    def is_possible():
        if os.geteuid() != 0 or shutil.which("ip") is None:
            return False
        name = f"inlay-try-{os.getpid()}"
        if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
            return False
        bridge = ["ip", "-n", name, "link", "add", "try", "type", "bridge"]
        done = subprocess.run(bridge, capture_output=True)
        ip("netns", "del", name)
        return done.returncode == 0

    def link(self, name):
        self.links += 1
        return Link(self, name, self.links)


class Link:
    """One namespace, and its cable."""

    def __init__(self, network, name, number):
        self.bridge = network.bridge
        self.namespace = f"inlay-{network.number}-{name}"
        self.interface = f"inlay{network.number}-{name}"
        self.address = f"{network.subnet}.{number + 1}"
        self.command = ("ip", "netns", "exec", self.namespace)
        ip("netns", "add", self.namespace)
        network.rig.stack.callback(ip, "netns", "del", self.namespace)
        inside = ("-n", self.namespace)
        ip("link", "add", self.interface, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        ip(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        ip(*inside, "link", "set", "lo", "up")
        ip("link", "set", self.interface, "master", self.bridge, "up")

    def cut(self):
        # The interface stays up: nobody is informed.
        ip("link", "set", self.interface, "nomaster")

    def mend(self):
        ip("link", "set", self.interface, "master", self.bridge)


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
