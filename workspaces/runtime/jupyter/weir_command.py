#!/usr/bin/env python3
"""Runs weir, the command line. The program comes from the server of the workspace when it is first used, and
again when the server has another one."""

import fcntl
import http.client
import json
import os
import platform
import shutil
import sys
import urllib.parse

DIRECTORY = "/tmp/weir-command"  # of this user, who is the only one of the container


class Unusable(Exception):
    """The server has no program for this workspace."""


def locked():
    """Makes the directory, and returns a lock of it, which ends with this process or its next program."""
    try:
        os.mkdir(DIRECTORY, mode=0o700)
    except FileExistsError:
        pass
    found = os.lstat(DIRECTORY)
    if found.st_uid != os.getuid() or found.st_mode & 0o170777 != 0o40700:
        raise OSError("%s is not a directory of this user alone" % DIRECTORY)
    lock = os.open(DIRECTORY, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def kept():
    """Returns the path of the program that was fetched; None: there is none."""
    paths = [os.path.join(DIRECTORY, name) for name in os.listdir(DIRECTORY) if not name.startswith(".")]
    return paths[0] if paths else None


def fetch(have):
    """Returns the path of the server's program, which may be the one at have."""
    url = urllib.parse.urlsplit(os.environ["WEIR_API"])
    headers = {"Authorization": "Bearer " + os.environ.get("WEIR_API_TOKEN", "")}
    if have:
        headers["If-None-Match"] = '"%s"' % os.path.basename(have)
    connection = http.client.HTTPConnection(url.netloc, timeout=20)
    connection.request("GET", "/weir?machine=" + urllib.parse.quote(platform.machine()), headers=headers)
    response = connection.getresponse()
    if response.status == http.client.NOT_MODIFIED:
        return have
    if response.status != http.client.OK:
        raw = response.read()
        try:
            raise Unusable(json.loads(raw)["detail"])
        except (ValueError, KeyError, TypeError):
            raise Unusable("the server answers %d" % response.status)
    for name in os.listdir(DIRECTORY):  # two would need twice the space
        os.unlink(os.path.join(DIRECTORY, name))
    return save(response, response.headers["ETag"].strip('"'))


def save(response, name):
    """Writes an executable file, whole or not at all, and returns its path."""
    path, part = os.path.join(DIRECTORY, name), os.path.join(DIRECTORY, ".part")
    with open(part, "wb") as f:
        shutil.copyfileobj(response, f)
        if f.tell() != int(response.headers["Content-Length"]):
            raise OSError("the server ended the connection too early")
        os.fchmod(f.fileno(), 0o700)
    os.rename(part, path)
    return path


def main():
    if not os.environ.get("WEIR_API"):
        sys.exit("weir: this workspace does not reach its server: WEIR_API is not set")
    path = None
    try:
        lock = locked()
        path = kept()
        path = fetch(path)
    except (OSError, http.client.HTTPException, Unusable) as e:
        if not path or not os.path.exists(path):  # otherwise it can tell more than this script
            sys.exit("weir: cannot fetch the program from the server: %s" % e)
    try:
        os.execv(path, ["weir"] + sys.argv[1:])
    except OSError as e:
        sys.exit("weir: the program of the server does not start here: %s" % e)


main()
