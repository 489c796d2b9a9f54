import assert from 'node:assert/strict';
import { test } from 'node:test';

import { showDates, showTicks } from '../src/ticks';

test('numbers at an axis are told apart, however small the values are', () => {
  assert.deepEqual(showTicks([0, 0.0001, 0.0002], 0.0001), ['0', '0.0001', '0.0002']);
  assert.deepEqual(showTicks([0, 0.00025, 0.0005], 0.00025), ['0', '0.00025', '0.00050']);
  assert.deepEqual(showTicks([-0.05, 0, 0.05], 0.05), ['-0.05', '0', '0.05']);
});

test('numbers have no more digits than they need', () => {
  assert.deepEqual(showTicks([0, 20, 40], 20), ['0', '20', '40']);
  assert.deepEqual(showTicks([0, 2.5, 5], 2.5), ['0', '2.5', '5.0']);
});

test("an axis of days names them as the pages do, and one of hours names a day where it begins", () => {
  const at = (day, hour) => new Date(2026, 10, day, hour).getTime() / 1000;
  const day = (number) => new Date(2026, 10, number).toLocaleDateString([], { day: "numeric", month: "short" });
  assert.deepEqual(showDates([at(14, 1), at(16, 1)], 2 * 86_400), [day(14), day(16)]);
  const [first, second] = showDates([at(14, 18), at(15, 0)], 6 * 3600);
  assert.match(first, /18|6/);
  assert.equal(second, day(15));
});
