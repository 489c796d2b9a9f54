import assert from 'node:assert/strict';
import { test } from 'node:test';

import { HIDDEN, nextAsk, NO_POOL, SELDOM, SOON } from '../lib/pacing.js';
import { NOTHING, statusText } from '../lib/view.js';

const idle = { ...NOTHING, pool: 'there', brief: '3 of 8 GPUs free' };
const busy = {
  ...idle,
  waiting: [{ lease: 'w', kernel: '', kind: 'front', title: '', sentence: '', brief: '2nd in line', waited_ms: 1 }]
};
const ready = {
  ...idle,
  running: [{ lease: 'r', kernel: '', kind: 'front', title: '', sentence: '', is_cell: false, command: '' }]
};

test('a page that nobody sees asks only while a cell waits or runs', () => {
  assert.equal(nextAsk(idle, true, true, 0), null);
  assert.equal(nextAsk(ready, true, false, 0), null);
  assert.equal(nextAsk(busy, true, false, 0), HIDDEN);
});

test('a page that is seen asks soon where something happens or the panel is open, and seldom else', () => {
  assert.equal(nextAsk(busy, false, false, 0), SOON);
  assert.equal(nextAsk(idle, false, true, 0), SOON);
  assert.equal(nextAsk(idle, false, false, 0), SELDOM);
  assert.equal(nextAsk(NOTHING, false, false, 0), NO_POOL);
});

test('a server that does not answer is asked less and less, and by a hidden page not for ever', () => {
  const waits = [1, 2, 3, 4, 9, 50].map(failures => nextAsk(busy, false, false, failures));
  assert.deepEqual(waits, [12_000, 24_000, 48_000, NO_POOL, NO_POOL, NO_POOL]);
  assert.equal(nextAsk(busy, true, false, 5), null);
});

test('the status bar says nothing where there is no pool', () => {
  assert.equal(statusText(NOTHING), '');
  assert.equal(statusText({ ...NOTHING, pool: 'startable' }), '');
});

test('the status bar says what runs, my place, and what is free', () => {
  assert.equal(statusText(idle), '3 of 8 GPUs free');
  assert.equal(statusText(ready), '3 of 8 GPUs free');
  assert.equal(statusText(busy), '2nd in line · 3 of 8 GPUs free');
  const running = [{ ...ready.running[0], is_cell: true }];
  assert.equal(statusText({ ...busy, running }), '1 running · 2nd in line · 3 of 8 GPUs free');
  assert.equal(statusText({ ...NOTHING, pool: 'away', brief: 'GPU pool away' }), 'GPU pool away');
});
