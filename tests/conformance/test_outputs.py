"""What a cell emits: complete, in order, live, and never from the wrong process."""

import json

import pytest

from bulletin.wire.messages import Ended, Output
from tests.conformance.agent_side import Session


def test_stdout_and_stderr_keep_their_order(session: Session) -> None:
    result = session.run("import sys\nfor i in range(50):\n    print(i)\n    print(-i, file=sys.stderr)")
    texts = "".join(content["text"] for content in result.of("stream"))
    assert texts == "".join(f"{i}\n{-i}\n" for i in range(50))
    assert result.stderr == "".join(f"{-i}\n" for i in range(50))


def test_displays_keep_their_place_between_prints(session: Session) -> None:
    result = session.run("for i in range(3):\n    print(i)\n    display(i)\n99")
    assert [kind for kind, _ in result.outputs] == ["stream", "display_data"] * 3 + ["execute_result"]
    assert [content["data"]["text/plain"] for content in result.of("display_data")] == ["0", "1", "2"]


def test_carriage_returns_arrive_as_they_are(session: Session) -> None:
    assert session.run("for i in range(5):\n    print(f'{i} of 4', end='\\r', flush=True)").stdout == "".join(
        f"{i} of 4\r" for i in range(5)
    )


def test_a_progress_bar_draws_itself(session: Session) -> None:
    result = session.run("from tqdm import tqdm\nfor _ in tqdm(range(3)): pass")
    assert result.outcome == "returned"
    assert "100%" in result.stderr
    assert "\r" in result.stderr


def test_the_first_text_goes_out_while_the_cell_still_runs(session: Session) -> None:
    cell = session.start("print('early')\nx = input()")
    heard = session.hear()
    assert isinstance(heard, Output)
    assert json.loads(bytes(session.blobs[0])) == {"name": "stdout", "text": "early\n"}
    assert session.finish(cell, answers=["go on"]).outcome == "returned"


def test_displays_are_updated_and_cleared(session: Session) -> None:
    result = session.run(
        "from IPython.display import clear_output\n"
        "h = display('one', display_id='d')\nh.update('two')\nclear_output(wait=True)"
    )
    assert [kind for kind, _ in result.outputs] == ["display_data", "update_display_data", "clear_output"]
    assert [content["transient"] for kind, content in result.outputs[:2]] == [{"display_id": "d"}] * 2
    assert result.of("clear_output") == [{"wait": True}]


def test_images_travel_as_base64_and_nan_as_text(session: Session) -> None:
    result = session.run(
        "from IPython.display import Image, publish_display_data as show\n"
        "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n....'))\n"
        "show({'image/png': b'\\x01\\x02', 'application/json': {'x': float('nan')}})"
    )
    image, raw = result.of("display_data")
    assert image["data"]["image/png"].strip() == "iVBORw0KGgouLi4u"
    assert raw["data"] == {"image/png": "AQI=", "application/json": {"x": "nan"}}


def test_an_output_that_is_too_large_becomes_a_note(session: Session) -> None:
    result = session.run("display({'text/html': 'x' * 70_000_000}, raw=True)\nprint('on')")
    assert not result.of("display_data")
    assert result.stderr.count("\n") == 1
    assert "is not shown" in result.stderr
    assert result.stdout == "on\n"


def test_a_very_long_text_arrives_whole(session: Session) -> None:
    assert len(session.run("print('x' * 80_000_000)").stdout) == 80_000_001


def test_many_lines_arrive_complete_and_in_order(session: Session) -> None:
    result = session.run("for i in range(200_000): print(i)")
    assert result.stdout == "".join(f"{i}\n" for i in range(200_000))


def test_a_writer_who_is_far_ahead_waits(session: Session) -> None:
    source = (
        "import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for i in range(300_000): print('a line of some forty characters', i)\n"
        "print('grown by KiB:', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    last = session.run(source).stdout.splitlines()[-1]
    assert int(last.split()[-1]) < 10_000  # of about 12 MB printed


def test_odd_characters_do_not_break_a_stream(session: Session) -> None:
    result = session.run("print('\\ud800 \\x00 é 🦋')\nimport sys\nsys.stdout.buffer.write('ü'.encode())")
    assert "é 🦋" in result.stdout
    assert "ü" in result.stdout


def test_output_of_c_code_and_programs_is_relayed(session: Session) -> None:
    result = session.run(
        "import ctypes, os, subprocess, sys\n"
        "os.write(1, b'from os.write\\n')\nos.write(2, b'to stderr\\n')\n"
        "subprocess.run(['echo', 'from echo'])\nsubprocess.run(['echo', 'to our stdout'], stdout=sys.stdout)\n"
        "ctypes.CDLL(None).printf(b'from printf')"
    )
    assert result.stdout.startswith("from os.write\nfrom echo\nto our stdout\nfrom printf")
    assert result.stderr == "to stderr\n"


def test_a_program_and_prints_around_it_keep_their_order(session: Session) -> None:
    source = "import subprocess\nfor i in range(20):\n    print('a', i)\n    subprocess.run(['echo', 'b', str(i)])"
    assert session.run(source).stdout == "".join(f"a {i}\nb {i}\n" for i in range(20))


def test_everything_a_program_wrote_comes_before_the_end(session: Session) -> None:
    source = "import subprocess\nsubprocess.run(['sh', '-c', 'yes 0123456789 | head -c 5000000']);"
    assert len(session.run(source).stdout) == 5_000_000


def test_forked_workers_print_through_the_same_output(session: Session) -> None:
    source = (
        "import multiprocessing, sys\n"
        "def work(i):\n    print('worker', i)\n    print('warning', i, file=sys.stderr)\n"
        "    display(i)\n    return i * i\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n    print(sum(pool.map(work, range(20))))"
    )
    result = session.run(source)
    assert result.outcome == "returned", result.error
    lines = result.stdout.splitlines()
    assert sorted(line for line in lines if "worker" in line) == sorted(f"worker {i}" for i in range(20))
    assert "2470" in lines
    assert len(result.stderr.splitlines()) == 20
    assert session.run("print('well')").stdout == "well\n"


def test_a_fork_that_runs_to_the_end_of_the_cell_ends_there(session: Session) -> None:
    result = session.run(
        "import os\npid = os.fork()\nprint('child' if pid == 0 else 'parent')\nif pid: os.waitpid(pid, 0)"
    )
    assert sorted(result.stdout.split()) == ["child", "parent"]
    assert session.run("print(1)").stdout == "1\n"


def test_the_child_of_a_child_prints_what_it_says_and_no_more(session: Session) -> None:
    result = session.run(
        "import os\npid = os.fork()\n"
        "if pid == 0:\n    inner = os.fork()\n"
        "    if inner == 0:\n        print('inner', flush=True)\n        os._exit(0)\n"
        "    os.waitpid(inner, 0)\n    os._exit(0)\n"
        "os.waitpid(pid, 0)"
    )
    assert (result.stdout, result.stderr) == ("inner\n", "")


def test_a_fork_while_another_thread_prints_does_not_hang(session: Session) -> None:
    source = (
        "import os, threading\nstop = threading.Event()\n"
        "def chat():\n    while not stop.is_set(): print('.', end='')\n"
        "t = threading.Thread(target=chat)\nt.start()\n"
        "for i in range(20):\n    pid = os.fork()\n"
        "    if pid == 0:\n        print('c', end='', flush=True)\n        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "stop.set()\nt.join()"
    )
    assert session.run(source).stdout.count("c") == 20


def test_threads_print_into_the_cell_that_has_started_them(session: Session) -> None:
    first = session.start(
        "import threading\ngo = threading.Event()\nthreading.Thread(target=lambda: (go.wait(), print('late'))).start()"
    )
    session.finish(first)
    second = session.run("print('other')\ngo.set()")
    assert second.stdout == "other\n"
    while not second.late:
        heard = session.hear()
        assert isinstance(heard, Output)
        second.late.append((heard.cell, json.loads(bytes(session.blobs[0]))))
    assert second.late == [(first, {"name": "stdout", "text": "late\n"})]


def test_a_print_that_is_not_text_is_the_writers_error(session: Session) -> None:
    result = session.run("import sys\nsys.stdout.write(b'bytes')")
    assert result.ended.error is not None
    assert result.ended.error.name == "TypeError"


def test_standard_output_is_what_libraries_expect(session: Session) -> None:
    source = (
        "import sys\nout = sys.stdout\n"
        "print(out.isatty(), out.encoding, out.fileno(), out.writable(), sys.stderr.fileno(), out.closed)\n"
        "print(repr(sys.stdin.read()))"
    )
    assert session.run(source).stdout == "False utf-8 1 True 2 False\n''\n"


@pytest.mark.parametrize("kind", ["stream", "display_data"])
def test_nothing_of_a_cell_comes_after_its_end(session: Session, kind: str) -> None:
    cell = session.start("for i in range(500):\n    print(i)\n    display(i)")
    count = 0
    while not isinstance(heard := session.hear(), Ended):
        assert isinstance(heard, Output)
        count += heard.type == kind
    assert heard.cell == cell
    assert count == 500
