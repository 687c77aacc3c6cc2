"""The real AWS CLI, started once: `aws_cli.py SOCKET` loads it and then forks for each command that arrives.

Loading takes most of a second of CPU, and the address script calls it several times a run. `install` writes an
`aws` that sends its words and environment here and passes on what comes back."""

import json
import os
import pathlib
import socket
import sys
import tempfile

CLIENT = """#!/usr/bin/python3 -SE
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
server.sendall(json.dumps([sys.argv[1:], dict(os.environ)]).encode() + b"\\n")
code, out, err = json.loads(server.makefile().read())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""


def install(folder, path):
    """Writes folder/aws, a client of the server at the socket `path`."""
    client = pathlib.Path(folder) / "aws"
    client.write_text(CLIENT.format(path=str(path)))
    client.chmod(0o755)


def serve(path):
    from awscli.clidriver import create_clidriver

    driver = create_clidriver()
    os.environ["AWS_MAX_ATTEMPTS"] = "1"
    nowhere = ["--endpoint-url", "http://127.0.0.1:9"]
    run(driver, ["ec2", "describe-addresses", *nowhere])  # loads what every command needs
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            continue
        words, environment = json.loads(connection.makefile().readline())
        os.environ.clear()
        os.environ.update(environment)
        connection.sendall(json.dumps(run(driver, words)).encode())
        connection.close()
        os._exit(0)


def run(driver, words):
    """Exit code, output and error output of one command."""
    files = [tempfile.TemporaryFile("w+") for _ in range(2)]
    kept = [os.dup(number) for number in (1, 2)]
    for number, file in zip((1, 2), files):
        os.dup2(file.fileno(), number)
    try:
        code = driver.main(words)
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    for number, old in zip((1, 2), kept):
        os.dup2(old, number)
    for file in files:
        file.seek(0)
    return [code, *(file.read() for file in files)]


if __name__ == "__main__":
    serve(sys.argv[1])
