"""What ordinary programs do must work under the profile. Prints a line for each; exits 1 on a failure."""

import asyncio
import fcntl
import mmap
import multiprocessing
import os
import resource
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor


def threads():
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda n: n * n, range(100))) == 328350
    lock, seen = threading.Lock(), []

    def add(n):
        with lock:
            seen.append(n)

    workers = [threading.Thread(target=add, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(seen) == list(range(8))


def subprocesses():
    done = subprocess.run(["cat"], input=b"text", capture_output=True, timeout=20, check=True)
    assert done.stdout == b"text"
    done = subprocess.run("echo $((6 * 7)) | cat", shell=True, capture_output=True, timeout=20, check=True)
    assert done.stdout == b"42\n"
    child = os.fork()
    if child == 0:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    pid = os.posix_spawn("/bin/true", ["true"], {})
    assert os.waitpid(pid, 0)[1] == 0


def async_sockets():
    async def run():
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        other, answer = await asyncio.open_connection(sock=theirs)
        writer.write(b"ping\n")
        assert await other.readline() == b"ping\n"
        answer.write(b"pong\n")
        assert await reader.readline() == b"pong\n"
        writer.close()
        answer.close()
        process = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
        assert (await process.communicate())[0] == b"hi\n"
        async with asyncio.timeout(20):
            await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(10)))

    asyncio.run(run())


def unix_server():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(folder + "/s")
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(folder + "/s")
            accepted, _ = server.accept()
            with accepted:
                accepted.sendall(b"x")
                assert client.recv(1) == b"x"


def no_network():
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET):
        try:
            socket.socket(family, socket.SOCK_RAW).close()
        except OSError as error:
            assert error.errno == 97, error  # EAFNOSUPPORT
        else:
            raise AssertionError(f"a socket of family {family}")


def databases():
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(folder + "/x.db")
        db.execute("PRAGMA journal_mode=WAL")  # shared memory and locks
        db.execute("CREATE TABLE t (n INTEGER)")
        db.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(100)))
        db.commit()
        assert db.execute("SELECT sum(n) FROM t").fetchone() == (4950,)
        db.close()


def square(n):
    return n * n


def processes():
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, range(10)) == [n * n for n in range(10)], method
    queue = multiprocessing.Queue()
    queue.put("x")
    assert queue.get(timeout=20) == "x"
    queue.close()


def files():
    with tempfile.TemporaryFile() as file:
        file.write(b"0123456789" * 1000)
        file.flush()
        os.fsync(file.fileno())
        fcntl.flock(file, fcntl.LOCK_EX)
        with mmap.mmap(file.fileno(), 0) as view:
            assert view[9:11] == b"90"
    with mmap.mmap(-1, 1 << 20) as view:
        view.madvise(mmap.MADV_DONTNEED)
    fd = os.memfd_create("m")
    os.write(fd, b"x")
    os.close(fd)
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(folder + "/fifo")
        os.symlink("fifo", folder + "/link")
        os.replace(folder + "/link", folder + "/moved")
        os.chmod(folder + "/fifo", 0o600)
        assert sorted(entry.name for entry in os.scandir(folder)) == ["fifo", "moved"]


def waiting():
    ours, theirs = os.pipe()
    poll = select.epoll()
    poll.register(ours, select.EPOLLIN)
    os.write(theirs, b"x")
    assert poll.poll(20) == [(ours, select.EPOLLIN)]
    poll.close()
    assert select.select([ours], [], [], 20)[0] == [ours]
    before = time.monotonic()
    time.sleep(0.01)
    assert time.monotonic() - before >= 0.01 and time.time() > 1e9 and time.process_time() >= 0


def signals():
    got = []
    signal.signal(signal.SIGALRM, lambda number, _: got.append(number))
    signal.alarm(1)
    deadline = time.monotonic() + 20
    while not got and time.monotonic() < deadline:
        signal.sigtimedwait([signal.SIGUSR1], 0.05)
    assert got == [signal.SIGALRM]
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.kill(os.getpid(), 0)


def limits():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 100), hard))
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(soft, 100)
    assert resource.prlimit(0, resource.RLIMIT_CORE)[0] >= 0
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    assert os.sched_getaffinity(0) == cpus and os.cpu_count() >= 1
    before = os.nice(0)
    assert os.nice(1) == before + 1
    assert os.getpriority(os.PRIO_PROCESS, 0) == before + 1


def main():
    failed = 0
    for check in (threads, subprocesses, async_sockets, unix_server, no_network, databases, processes,
                  files, waiting, signals, limits):
        try:
            check()
            print("ok  ", check.__name__, flush=True)
        except Exception as error:  # whatever it is, the others still run
            failed += 1
            print("FAIL", check.__name__, type(error).__name__, error, flush=True)
    if not failed:
        print("all work")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
