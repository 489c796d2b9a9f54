import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CellFollower } from '../lib/notices.js';
import { NOTHING } from '../lib/view.js';

const there = { ...NOTHING, pool: 'there', is_whole: true };
const waiting = (lease, waited_ms, more = {}) => ({
  lease,
  kernel: 'k',
  kind: 'front',
  title: '',
  sentence: 'Waiting.',
  brief: '1st in line',
  waited_ms,
  ...more
});
const running = (lease, more = {}) => ({
  lease,
  kernel: 'k',
  kind: 'front',
  title: '',
  sentence: 'Running for 2 s.',
  place: 'On a GPU of n1.',
  is_cell: true,
  command: '',
  ...more
});
const ended = (lease, more = {}) => ({
  lease,
  title: '',
  outcome: '',
  is_well: true,
  sentence: 'ran 3 min on n1',
  ended_at_ms: 1,
  ...more
});
const play = (...views) => {
  const follower = new CellFollower(kernel => (kernel === 'k' ? '' : `${kernel}.ipynb`));
  return views.flatMap(view => follower.step({ ...there, ...view }).notices.map(one => one.title));
};

test('a cell that waited long is told of when it starts and when it ends', () => {
  const told = play(
    { waiting: [waiting('a', 1_000)] },
    { waiting: [waiting('a', 60_000)] },
    { running: [running('a')] },
    { running: [running('a', { is_cell: false })], ended: [ended('a')] },
    {}
  );
  assert.deepEqual(told, ['Your cell has started', 'Your cell has ended']);
});

test('a cell that hardly waited, or did not, is not told of', () => {
  assert.deepEqual(play({ waiting: [waiting('a', 2_000)] }, { running: [running('a')] }, { ended: [ended('a')] }), []);
  assert.deepEqual(play({ running: [running('a')] }, { ended: [ended('a')] }), []);
});

test('a background cell is told of when it ends, by its label, and how', () => {
  const cell = { kind: 'background', title: 'big run' };
  assert.deepEqual(play({ running: [running('a', cell)] }, { ended: [ended('a')] }), [
    'Background cell “big run” has ended'
  ]);
  const badly = ended('a', { is_well: false, outcome: 'used too much memory' });
  assert.deepEqual(play({ running: [running('a', cell)] }, { ended: [badly] }), [
    'Background cell “big run”: used too much memory'
  ]);
});

test('places of a sweep are not told of one by one', () => {
  const part = { kind: 'sweep' };
  assert.deepEqual(
    play({ waiting: [waiting('a', 60_000, part)] }, { running: [running('a', part)] }, { ended: [ended('a')] }),
    []
  );
});

test('what ended before anybody looked is no news', () => {
  assert.deepEqual(play({ ended: [ended('a')] }, { ended: [ended('a'), ended('b')] }), []);
});

test('the end is told once the ledger has it, and it is asked for until then', () => {
  const follower = new CellFollower(kernel => (kernel === 'k' ? '' : `${kernel}.ipynb`));
  follower.step({ ...there, running: [running('a', { kind: 'background' })] });
  const partly = follower.step({ ...there, is_whole: false });
  assert.deepEqual(partly, { notices: [], wantsEnded: true });
  assert.equal(follower.step(there).wantsEnded, true);
  const told = follower.step({ ...there, ended: [ended('a')] });
  assert.deepEqual([told.notices.length, told.wantsEnded], [1, false]);
});

test('a ledger that never has it is not asked for ever', () => {
  const follower = new CellFollower(kernel => (kernel === 'k' ? '' : `${kernel}.ipynb`));
  follower.step({ ...there, running: [running('a', { kind: 'background' })] });
  let rounds = 0;
  while (follower.step(there).wantsEnded) {
    rounds += 1;
    assert.ok(rounds < 10);
  }
});

test('a pool that is away for a moment ends no cell', () => {
  const cell = running('a', { kind: 'background' });
  assert.deepEqual(play({ running: [cell] }, { pool: 'away' }, { pool: 'none' }, { running: [cell] }), []);
});

test('of several cells on one lease the last one counts', () => {
  const told = [];
  const follower = new CellFollower(kernel => (kernel === 'k' ? '' : `${kernel}.ipynb`));
  follower.step({ ...there, running: [running('a', { kind: 'background' })] });
  const both = [ended('a', { ended_at_ms: 2 }), ended('a', { ended_at_ms: 1, is_well: false, outcome: 'x' })];
  told.push(...follower.step({ ...there, ended: both }).notices);
  assert.equal(told[0].title, 'Your background cell has ended');
});

test('a notice names the notebook of its cell, and says nothing that is over in a moment', () => {
  const follower = new CellFollower(kernel => `${kernel}.ipynb`);
  const told = [
    { waiting: [waiting('a', 60_000, { kernel: 'thesis' })] },
    { running: [running('a', { kernel: 'thesis' })] },
    { running: [running('a', { kernel: '' })] },
    { ended: [ended('a')] }
  ].flatMap(view => follower.step({ ...there, ...view }).notices.map(one => `${one.title}. ${one.body}`));
  assert.deepEqual(told, [
    'Your cell in thesis.ipynb has started. On a GPU of n1.',
    'Your cell in thesis.ipynb has ended. ran 3 min on n1'
  ]);
});

test('a background cell stays one when a broker that was restarted does not know its kernel yet', () => {
  const told = play(
    { running: [running('a', { kind: 'background', title: 'big run' })] },
    { running: [running('a', { kernel: '' })] },
    { ended: [ended('a')] }
  );
  assert.deepEqual(told, ['Background cell “big run” has ended']);
});
