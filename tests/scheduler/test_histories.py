"""Random histories of a small pool: honest agents, links that lose and repeat, and a referee who judges each step."""

from hypothesis import settings

from tests.scheduler.history_machines import QUICK, Booked, CpuPool, ManyProjects, MixedPool, Pool, Timetable

TestPool = Pool.TestCase
TestPool.settings = QUICK
TestManyProjects = ManyProjects.TestCase
TestManyProjects.settings = QUICK
TestBooked = Booked.TestCase
TestBooked.settings = settings(QUICK, max_examples=50)
TestTimetable = Timetable.TestCase
TestTimetable.settings = settings(QUICK, max_examples=50)
TestMixedPool = MixedPool.TestCase
TestMixedPool.settings = settings(QUICK, max_examples=80)
TestCpuPool = CpuPool.TestCase
TestCpuPool.settings = settings(QUICK, max_examples=60)
