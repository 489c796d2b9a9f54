import assert from 'node:assert/strict';
import { test } from 'node:test';

import { showTicks } from '../src/ticks';

test('numbers at an axis are told apart, however small the values are', () => {
  assert.deepEqual(showTicks([0, 0.0001, 0.0002], 0.0001), ['0', '0.0001', '0.0002']);
  assert.deepEqual(showTicks([0, 0.00025, 0.0005], 0.00025), ['0', '0.00025', '0.00050']);
  assert.deepEqual(showTicks([-0.05, 0, 0.05], 0.05), ['-0.05', '0', '0.05']);
});

test('numbers have no more digits than they need', () => {
  assert.deepEqual(showTicks([0, 20, 40], 20), ['0', '20', '40']);
  assert.deepEqual(showTicks([0, 2.5, 5], 2.5), ['0', '2.5', '5.0']);
});
