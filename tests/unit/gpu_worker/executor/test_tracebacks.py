"""Tracebacks of cells, where something is odd about the code that was interrupted."""

import sys
import types

from gpu_worker.executor.tracebacks import hide_bulletin_frames


def of_no_line() -> types.FrameType:
    """A frame of a function that has instructions of no line: those that put an exception away."""
    try:
        frame = sys._getframe()
    except KeyError as error:
        raise ValueError from error
    return frame


def test_an_interrupt_at_an_instruction_of_no_line_stays_what_it_is() -> None:
    frame = of_no_line()
    [at, *_] = [begin for begin, _, line in frame.f_code.co_lines() if line is None]
    error = KeyboardInterrupt()
    error.__traceback__ = types.TracebackType(None, frame, at, -1)
    assert error.__traceback__.tb_lineno is None  # type: ignore[comparison-overlap]  # what typeshed does not know
    hide_bulletin_frames(error)
    assert error.__traceback__.tb_frame is frame
    assert error.__traceback__.tb_lineno == frame.f_code.co_firstlineno
