import assert from 'node:assert/strict';
import { test } from 'node:test';

import { pauseMs } from '../src/retry';

test('what does not answer is asked again soon, and then less and less often', () => {
  const pauses = [1, 2, 3, 4, 5, 6, 7, 100].map((failures) => pauseMs(3_000, failures, 0.5));
  assert.deepEqual(pauses.map(Math.round), [1_500, 3_000, 6_000, 12_000, 24_000, 30_000, 30_000, 30_000]);
});

test('what is asked once a minute is asked again as soon as anything else where it fails', () => {
  assert.equal(Math.round(pauseMs(60_000, 0, 0.5)), 60_000);
  assert.equal(Math.round(pauseMs(60_000, 1, 0.5)), 1_500);
});

test('pages do not all ask at once', () => {
  assert.ok(pauseMs(3_000, 0, 0) < pauseMs(3_000, 0, 1));
});
